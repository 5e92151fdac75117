"""Requests go on until all is decided and enough followed; each answer is judged, and the gateway is told."""

from collections import Counter

from gateway.demo.client import Answer
from gateway.demo.rollout.notes import Requests, Way
from gateway.demo.rollout.traffic import AFTER, Course, Tally, work
from gateway.demo.workload import Item


def course() -> Course:
    """A fresh one."""
    return Course(Requests(1, 7), 7)


def take(found: Course, count: int) -> Counter[Way]:
    """The next requests by way; fewer where it ends."""
    ways: Counter[Way] = Counter()
    for _ in range(count):
        request = found.next()
        if request is None:
            break
        ways[request.way] += 1
    return ways


def test_undecided_it_does_not_end() -> None:
    """Both ways come, the one that takes longer more often."""
    ways = take(course(), 900)
    assert sum(ways.values()) == 900
    assert ways[Way.SCHEMA] > ways[Way.FREE] > 200


def test_what_is_decided_comes_less_often() -> None:
    """But it goes on, and what is sent before the other is decided counts as proof too."""
    found = course()
    found.settle(Way.FREE, "rolled_back")
    ways = take(found, 900)
    assert sum(ways.values()) == 900
    assert AFTER < ways[Way.FREE] < ways[Way.SCHEMA] / 2
    found.settle(Way.SCHEMA, "promoted")
    assert take(found, 900) == {Way.SCHEMA: AFTER}
    assert found.next() is None


def test_a_decision_is_told_with_the_last_request_before_it() -> None:
    """What has a higher number was sent when every worker knew. The same again changes nothing."""
    found = course()
    take(found, 10)
    found.settle(Way.FREE, "rolled_back")
    take(found, 10)
    found.settle(Way.FREE, "rolled_back")
    assert found.decisions[Way.FREE].number == 10


def test_another_decision_begins_the_proof_anew() -> None:
    """A pool that is promoted and then rolled back has to stay out from then on."""
    found = course()
    found.settle(Way.SCHEMA, "promoted")
    found.settle(Way.FREE, "rolled_back")
    take(found, 900)
    found.settle(Way.SCHEMA, "rolled_back")
    assert found.decisions[Way.SCHEMA].number == 2 * AFTER
    assert take(found, 900) == {Way.SCHEMA: AFTER}


def test_stopped_it_ends() -> None:
    """At once, whatever is undecided."""
    found = course()
    found.stop()
    assert found.next() is None


class Client:
    """Answers right by a schema, wrong in free form, and every seventh request not at all."""

    def __init__(self, found: Course) -> None:
        self.course = found
        self.words: dict[int, bool] = {}

    async def send(self, item: Item) -> Answer:
        """One answer."""
        if item.number == 70:
            self.course.stop()
        if item.number % 7 == 0:
            return Answer(item.number, 503, 0.1, error="upstream_error: no")
        prompt = item.body["messages"][0]["content"]
        _, age, rest = prompt.split(", ")
        city = rest.removeprefix("lives in ").partition(".")[0]
        text = f'{{"age": {age}, "city": "{city}"}}' if "response_format" in item.body else prompt
        return Answer(item.number, 200, 0.1, pool="q4", request_id=f"id-{item.number}", text=text)

    async def judge(self, item: Item, answer: Answer, *, good: bool) -> bool:
        """A word on one."""
        assert answer.status == 200
        self.words[item.number] = good
        return True


async def test_every_answer_is_judged_and_told() -> None:
    """By what the note says; what was not answered is no answer of anybody."""
    found = course()
    client, tally = Client(found), Tally()
    await work(client, found, tally)  # type: ignore[arg-type]
    assert len(tally.sent) == 70
    for sent in tally.sent:
        answered = sent.answer.status == 200
        assert sent.told is answered
        assert sent.good is (answered and sent.request.way is Way.SCHEMA)
        assert client.words.get(sent.answer.number, False) is sent.good
    assert sum(tally.answers.values()) == 60
    assert tally.wrong[Way.SCHEMA, "q4"] == 0
    assert tally.wrong[Way.FREE, "q4"] == tally.of(Way.FREE)
