"""Good answers in prose, English and Chinese: what no check may fail. Written to tempt the checks where honest texts are odd."""

# ruff: noqa: E501 - sample texts are kept whole

from __future__ import annotations

from collections.abc import Iterator

from generators.shapes import Body, ask, case, say

EN = [
    ("What is the capital of Norway?", "Oslo."),
    ("What is 17 times 3?", "51"),
    ("Is water wet? Answer yes or no.", "Yes"),
    ("Thanks!", "You're welcome! 😊"),
    ("Give me a thumbs up.", "👍"),
    (
        "Why is the sky blue?",
        "Sunlight is a mix of all colours. Air molecules scatter short wavelengths far more strongly than long ones, so blue light "
        "reaches your eyes from every direction while red light passes almost straight through. At sunset the path through the air is "
        "longer, most of the blue is scattered away, and what is left looks orange or red.",
    ),
    (
        "Give me a packing list for a weekend hike.",
        "Here is a compact list:\n\n- Boots and two pairs of socks\n- Rain jacket\n- Fleece or light down layer\n- 2 litres of water per "
        "person\n- Map, compass, phone with offline maps\n- First-aid kit\n- Headlamp with spare batteries\n- Sandwiches, nuts, fruit\n"
        "- Sun cream and a hat\n\nTell someone where you are going before you leave.",
    ),
    (
        "Write a villanelle-like poem about the sea with a refrain.",
        "The tide comes in, the tide goes out again,\nIt lifts the boats and lays them on the sand,\nThe gulls complain like disappointed "
        "men.\n\nI watched the harbour lights come on at ten,\nI held a coil of tarred rope in my hand,\nThe tide comes in, the tide goes "
        "out again.\n\nMy father said it never asked him when,\nIt took his pots and half a strip of land,\nThe gulls complain like "
        "disappointed men.\n\nSo let it come, I will not count to ten,\nThere is no shore on which a man can stand:\nThe tide comes in, the "
        "tide goes out again,\nThe gulls complain like disappointed men.",
    ),
    (
        "Explain compound interest with an example.",
        "Compound interest means that interest is paid on earlier interest too. Put 1,000 euros away at 5 % a year: after one year you "
        "have 1,050, after two 1,102.50, after ten about 1,628.89. With simple interest it would be 1,500. The formula is "
        "A = P(1 + r)^n, where P is the sum you start with, r the yearly rate and n the number of years.",
    ),
    (
        "Compare tea and coffee in a table.",
        "| | Tea | Coffee |\n|---|---|---|\n| Caffeine per cup | 30–50 mg | 80–120 mg |\n| Preparation | steep 2–5 minutes | brew 2–4 "
        "minutes |\n| Taste | light, floral to malty | roasted, bitter to fruity |\n| Keeps hot well | yes | less so |\n\nBoth are fine in "
        "moderation; tea is gentler late in the day.",
    ),
    (
        "How do I tie a bowline?",
        "1. Make a small loop in the rope, leaving enough tail.\n2. Pass the tail up through the loop from below.\n3. Lead it around "
        "behind the standing part.\n4. Pass it back down through the small loop.\n5. Hold the tail and the loop, and pull the standing "
        "part tight.\n\nRemember: the rabbit comes out of the hole, runs around the tree, and goes back into the hole.",
    ),
    (
        "I can't sleep. I'm so tired of it.",
        "I'm sorry you're going through this; lying awake night after night wears anyone down. Try to get up at the same hour every day, "
        "keep the bedroom dark and cool, and leave the bed if you are still awake after twenty minutes. If it lasts longer than a few "
        "weeks, a doctor can help: insomnia is common and treatable.",
    ),
    (
        "What does 'sic' mean in a quotation?",
        "It is Latin for 'thus'. A writer adds [sic] after a word to show that the mistake or odd spelling stood in the original, "
        "as in: 'He recieved [sic] the letter in 1893.' It is not needed for harmless old spellings.",
    ),
    (
        "Sing me the chorus of a silly song you make up.",
        "Oh, la la la, the kettle's on,\nLa la la, the toast is gone,\nLa la la, the cat has sat\nUpon my only Sunday hat!",
    ),
    (
        "Which three books should I read about the sea?",
        "I can't recommend Conrad's 'Typhoon' enough: a hundred pages of weather and stubbornness. Then 'The Shipping News' by Annie "
        "Proulx for the cold coasts, and Rachel Carson's 'The Sea Around Us' for the science, still beautiful after seventy years.",
    ),
    (
        "Write a stern but fair note to tenants about noise.",
        "Dear residents,\n\nWe have had several complaints about music and drilling after 10 p.m. House rules ask for quiet between 22:00 "
        "and 7:00, and on Sundays all day. Please keep to them. If you plan a party, put a note in the hall two days ahead and end it by "
        "midnight.\n\nA second complaint about the same flat will bring a written warning.\n\nKind regards,\nThe management",
    ),
    (
        "How does a bill become law in a parliamentary system?",
        "In most parliaments a bill is introduced, read a first time without debate, and debated in principle at its second reading. A "
        "committee then goes through it clause by clause and proposes amendments. The house votes on these, passes the bill at third "
        "reading and sends it to the second chamber, if there is one, where much the same happens. Differences are settled by a joint "
        "committee or by sending the bill back and forth. Finally the head of state signs it, and it is published.",
    ),
    (
        "List the first ten prime numbers and then the squares of one to ten.",
        "Primes: 2, 3, 5, 7, 11, 13, 17, 19, 23, 29.\nSquares: 1, 4, 9, 16, 25, 36, 49, 64, 81, 100.",
    ),
    (
        "Explain the difference between 'affect' and 'effect'.",
        "Usually 'affect' is a verb and 'effect' a noun. The rain affected the match; the effect was a draw. There are two exceptions: "
        "'to effect a change' means to bring it about, and 'affect' as a noun is a psychologist's word for mood.",
    ),
    (
        "What are the side effects of ibuprofen? I know you are not a doctor.",
        "The common ones are stomach pain, heartburn and nausea; taking it with food helps. Rarer but serious are bleeding in the stomach, "
        "kidney trouble and allergic reactions. People with ulcers, kidney disease or heart failure, and women late in pregnancy, "
        "should not take it without asking a doctor. Do not go over 1,200 mg a day without advice.",
    ),
    (
        "Say hello in the style of a pirate.",
        "Ahoy there, matey! Arrr, what brings ye aboard me humble vessel this fine mornin'? Drop yer anchor and have a tot o' rum!",
    ),
    (
        "Give me the chemical formulas of five common acids.",
        "- Hydrochloric acid: HCl\n- Sulfuric acid: H₂SO₄\n- Nitric acid: HNO₃\n- Acetic acid: CH₃COOH\n- Carbonic acid: H₂CO₃",
    ),
    (
        "What is the Pythagorean theorem? Use symbols.",
        "In a right triangle with legs a and b and hypotenuse c: a² + b² = c². For a = 3, b = 4 this gives 9 + 16 = 25, so c = 5. In "
        "LaTeX: \\(a^2 + b^2 = c^2\\). It holds because the squares on the legs can be cut up and laid over the square on the hypotenuse.",
    ),
    (
        "Draw a small ASCII picture of a house.",
        "      /\\\n     /  \\\n    /____\\\n    |    |\n    | [] |\n    |____|\n\nThere is your house, with one window.",
    ),
    (
        "Explain what a unit test is, in two paragraphs.",
        "A unit test checks one small piece of a program, such as a function, apart from the rest. It calls the piece with chosen input "
        "and compares the result with what is expected. If a later change breaks the piece, the test fails and points to the place.\n\n"
        "Good unit tests are quick, independent of each other and of the outside world, and named after what they promise. Together they "
        "let you change code without fear, because you find out within seconds what you broke.",
    ),
    (
        "Give me ten adjectives for a storm.",
        "Furious, howling, relentless, black, sudden, salt-laden, biting, deafening, merciless, spent.",
    ),
    (
        "Can you open files on my computer?",
        "Not by myself: I only see the text you send me here. If you paste the contents of a file or attach it, I can read it, explain it "
        "or help you change it. For plain text, the simplest way is to copy and paste the part you have a question about.",
    ),
    (
        "What's the longest word in English?",
        "In major dictionaries it is pneumonoultramicroscopicsilicovolcanoconiosis, a made-up name for a lung disease, with 45 letters. "
        "Longer chemical names exist, but they are formulas rather than words.",
    ),
    (
        "Describe the taste of durian.",
        "Imagine custard that was stirred with almonds and a drop of sherry, left beside a crate of onions, and eaten in a room where "
        "someone forgot the gym bag. The flesh is rich, sweet and silky; the smell is what divides people, since it holds sulphur "
        "compounds that others know from leeks and, less kindly, from drains. Chilled, it tastes milder.",
    ),
    (
        "What happened on 9 November 1989?",
        "On the evening of 9 November 1989 Günter Schabowski announced at a press conference in East Berlin that people could travel "
        "freely, 'immediately, without delay'. Crowds went to the crossings, and at Bornholmer Straße the guards opened the gate at "
        "about 23:30. By morning tens of thousands had crossed. It was the end of the Berlin Wall, which had stood for 28 years.",
    ),
]

ZH = [
    ("挪威的首都是哪里？", "奥斯陆。"),
    ("十七乘以三等于多少？", "51"),
    ("谢谢你！", "不客气，随时可以问我。"),
    (
        "天空为什么是蓝色的？",
        "太阳光由各种颜色的光混合而成。空气分子对短波长的光散射得更强，所以蓝光从四面八方进入我们的眼睛，而红光大多直接穿过大气。"
        "傍晚时阳光穿过的大气更厚，蓝光几乎都被散射掉，剩下的就是橙色和红色。",
    ),
    (
        "给我一份周末登山的物品清单。",
        "建议带上：\n\n- 登山鞋和两双袜子\n- 防雨外套\n- 抓绒衣或轻羽绒\n- 每人两升水\n- 地图、指南针、离线地图\n- 急救包\n- 头灯和备用电池\n"
        "- 三明治、坚果、水果\n- 防晒霜和帽子\n\n出发前告诉家人你的路线和返回时间。",
    ),
    (
        "写一首关于秋天的五言绝句。",
        "风起雁南飞，\n霜浓草木稀。\n谁家灯火暖，\n独照夜归衣。",
    ),
    (
        "请解释复利，并举一个例子。",
        "复利就是把利息也算进本金，下一期继续生息。比如存入一万元，年利率百分之五，一年后是10500元，两年后是11025元，十年后大约是16289元。"
        "如果按单利计算，十年后只有15000元。时间越长，两者的差距越大。",
    ),
    (
        "用表格比较茶和咖啡。",
        "| 项目 | 茶 | 咖啡 |\n|---|---|---|\n| 每杯咖啡因 | 30–50毫克 | 80–120毫克 |\n| 冲泡时间 | 2–5分钟 | 2–4分钟 |\n| 口味 | 清淡、花香 | 焦香、微苦 |\n\n"
        "两者适量饮用都没有问题，晚上喝茶更温和一些。",
    ),
    (
        "怎样系称人结？",
        "1. 在绳子上做一个小圈，留出足够的绳尾。\n2. 绳尾从下往上穿过小圈。\n3. 绕过主绳的后面。\n4. 再从上往下穿回小圈。\n5. 捏住绳尾和绳圈，拉紧主绳。\n\n"
        "记忆口诀：兔子从洞里出来，绕树一圈，再钻回洞里。",
    ),
    (
        "我最近总是失眠，好累。",
        "听起来你真的很辛苦，连续睡不好谁都会撑不住。可以试试每天同一时间起床，卧室保持黑暗凉爽，躺下二十分钟还睡不着就起来坐一会儿。"
        "如果持续几周还不见好转，建议去看医生，失眠很常见，也有办法治疗。",
    ),
    (
        "帮我写一条提醒邻居安静的通知。",
        "各位邻居：\n\n近期多次收到晚上十点以后播放音乐、装修钻孔的投诉。按照公约，每天22:00至次日7:00以及周日全天请保持安静。"
        "如需聚会，请提前两天在楼道张贴告示，并在零点前结束。感谢大家的配合。\n\n物业管理处",
    ),
    (
        "什么是单元测试？",
        "单元测试是对程序中最小的部分（例如一个函数）单独进行的检查。它用选定的输入调用这一部分，再把结果与预期比较。"
        "以后如果有改动破坏了它，测试就会失败，并指出位置。好的单元测试速度快、互不依赖，名字说明它保证了什么。",
    ),
    (
        "列出前十个质数。",
        "2、3、5、7、11、13、17、19、23、29。",
    ),
    (
        "简单介绍一下长城。",
        "长城是中国古代的军事防御工程，从春秋战国开始修建，秦始皇把各国的城墙连接起来，明代又大规模重修。现存的明长城东起鸭绿江，西到嘉峪关，"
        "全长八千多公里。1987年它被列入世界遗产名录。最受欢迎的几段是八达岭、慕田峪和金山岭。",
    ),
    (
        "给我三个保持健康的建议。",
        "第一，每天走路半小时以上，比偶尔剧烈运动更有用。第二，晚饭吃七分饱，少油少盐，多吃蔬菜。第三，固定睡觉和起床的时间，睡前一小时不看手机。",
    ),
    (
        "用海盗的口气打个招呼。",
        "哈哈，伙计！哪阵海风把你吹到我的破船上来了？快下锚，坐下来喝一大杯朗姆酒，别让老子等太久！",
    ),
    (
        "说几个形容暴风雨的词。",
        "狂暴、呼啸、无情、漆黑、骤然、刺骨、震耳欲聋、铺天盖地。",
    ),
    (
        "你能打开我电脑里的文件吗？",
        "我自己做不到，我只能看到你发给我的文字。你可以把文件内容粘贴过来，或者作为附件上传，我再帮你阅读、解释或者修改。",
    ),
    (
        "榴莲是什么味道？",
        "果肉像放了杏仁的奶黄，甜、浓、滑，带一点酒香；气味却像旁边放着一筐洋葱，所以有人爱得要命，有人捂着鼻子走开。冷藏以后味道会柔和一些。",
    ),
    (
        "请用三句话总结《西游记》。",
        "孙悟空大闹天宫后被压在五行山下，五百年后被唐僧救出，拜他为师。师徒四人与白龙马一路西行，遇到九九八十一难，一次次降妖除魔。最后他们到达灵山，取得真经，各自修成正果。",
    ),
    (
        "API 和 SDK 有什么区别？",
        "API 是一组约定好的接口，规定程序之间怎样请求和返回数据；SDK 是开发工具包，通常包含库、示例和文档，内部会调用 API。简单说，API 是菜单，SDK 是连锅带铲的厨房。",
    ),
    (
        "写一段歌词，带重复的副歌。",
        "走过长街，灯火阑珊，\n我把心事折成小船。\n\n啦啦啦，随它漂远，\n啦啦啦，不必再见。\n\n等到春天，河水解冻，\n也许你会收到我的信笺。\n\n啦啦啦，随它漂远，\n啦啦啦，不必再见。",
    ),
]


def cases() -> Iterator[Body]:
    """Every good answer once; the checks that apply to any text must hold."""
    sound = ["error_object", "truncation", "empty", "finish_reason", "refusal", "garbage"]
    for lang, pairs in (("en", EN), ("zh", ZH)):
        for number, (user, text) in enumerate(pairs):
            yield case(f"prose/{lang}-{number:02d}", lang, ask(user), say(text), passes=sound)
