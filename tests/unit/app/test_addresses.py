"""Addresses as people write them, and ports held for children."""

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.app.addresses import Address, AddressError, parse_address, reserve


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("127.0.0.1:8080", Address("127.0.0.1", 8080)),
        ("localhost:1", Address("localhost", 1)),
        ("[::1]:9090", Address("::1", 9090)),
        (":8080", Address("0.0.0.0", 8080)),
        ("8080", Address("0.0.0.0", 8080)),
        ("h:0", Address("h", 0)),
    ],
)
def test_the_usual_spellings_are_understood(text, address):
    """With and without a host; IPv6 in brackets."""
    assert parse_address(text, "--listen") == address


@pytest.mark.parametrize("text", ["", "h:", "h:x", "h:65536", "::1:80", "h:-1", "h:8 0", "h:٣"])
def test_anything_else_names_the_option_and_the_form(text):
    """The message is all a person needs."""
    with pytest.raises(AddressError, match="--listen"):
        parse_address(text, "--listen")


@given(st.text(max_size=20))
def test_any_text_is_an_address_or_an_address_error(text):
    """And what is an address is spelled back to one that reads the same."""
    try:
        address = parse_address(text, "--x")
    except AddressError:
        return
    if "[" not in address.host and "]" not in address.host:
        assert parse_address(str(address), "--x") == address


def test_a_reserved_port_is_free_for_children_and_for_nobody_else():
    """Children share it with SO_REUSEPORT and get the connections; a second reservation is refused."""
    held = reserve(Address("127.0.0.1", 0), "--listen")
    port = held.address.port
    assert port
    with socket.socket() as child:
        child.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        child.bind(("127.0.0.1", port))
        child.listen()
        with pytest.raises(AddressError, match="already in use"):
            reserve(Address("127.0.0.1", port), "--listen")
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            child.accept()[0].close()
    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(("127.0.0.1", port))
    held.release()


def test_a_port_can_be_taken_again_right_after_a_restart():
    """Connections in TIME_WAIT do not keep a restarted gateway from its port."""
    held = reserve(Address("127.0.0.1", 0), "--listen")
    address = held.address
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        server.bind((address.host, address.port))
        server.listen()
        with socket.create_connection((address.host, address.port)) as client:
            accepted, _ = server.accept()
            accepted.close()  # the server closes first and keeps TIME_WAIT
            assert client.recv(1) == b""
    held.release()
    reserve(address, "--listen").release()


@pytest.mark.parametrize(
    ("host", "words"), [("203.0.113.7", "no interface"), ("no.such.host.invalid", "address of this")]
)
def test_an_address_that_is_not_ours_is_told_in_words(host, words):
    """Each cause has its own mend."""
    with pytest.raises(AddressError, match=words):
        reserve(Address(host, 1), "--admin")


def test_an_ipv6_address_is_written_in_brackets():
    """As it must be given again."""
    assert str(Address("::1", 5)) == "[::1]:5"


@pytest.mark.parametrize("listen", ["127.0.0.1", "0.0.0.0", "::"])
@pytest.mark.parametrize("admin", ["127.0.0.1", "0.0.0.0", "localhost", "::"])
def test_the_admin_port_is_never_that_of_the_clients(listen, admin):
    """Both are shared with SO_REUSEPORT, so the system would hand clients to either of them."""
    held = reserve(Address(listen, 0), "--listen")
    with pytest.raises(AddressError, match=r"--admin .* the port for clients"):
        reserve(Address(admin, held.address.port), "--admin", clients=held)
    held.release()


def test_one_port_number_on_two_interfaces_is_two_ports():
    """As is any free port beside another."""
    held = reserve(Address("127.0.0.1", 0), "--listen")
    reserve(Address("127.0.0.2", held.address.port), "--admin", clients=held).release()
    reserve(Address("127.0.0.1", 0), "--admin", clients=held).release()
    held.release()
