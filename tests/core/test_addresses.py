import pytest
from hypothesis import given
from hypothesis import strategies as st

from gtr_turbo.core.addresses import is_address, refuse_address
from gtr_turbo.errors import ConfigError


@pytest.mark.parametrize(
    "url",
    [
        "https://api.openai.com/v1",
        "http://localhost:8000/v1/",
        "http://127.0.0.1:1",
        "http://[::1]:8000/v1",
        "HTTPS://host/v1",
        "http://my_server:65535/a%20b?c=d",
        "http://xn--e1afmkfd/v1",
        "http://host:/v1",
        "http://user:word@host.example.:80/v1",
    ],
)
def test_addresses(url: str) -> None:
    assert is_address(url)
    refuse_address("url", url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "scripted",
        "api.openai.com/v1",
        "localhost:8000",
        "ftp://host/v1",
        "http:/host/v1",
        "http://",
        "http:///v1",
        "http://:80/v1",
        "http://localhost:80x/v1",
        "http://localhost:0/v1",
        "http://localhost:99999/v1",
        "http://host:80:80/v1",
        "http://[::1/v1",
        "http://a..b/v1",
        "http://" + "a" * 64 + "/v1",
        "http://" + "a/" * 2000,
        " http://host/v1",
        "http://host/v1\n",
        "http://ho st/v1",
        "http://host\t/v1",
        "http://host/\x00",
        "http://h\u00f6st/v1",
        "http://100%/v1",
        "http://[::1]x/v1",
        "http://[::g]/v1",
    ],
)
def test_what_is_no_address(url: str) -> None:
    assert not is_address(url)
    with pytest.raises(ConfigError, match=r"`url` must be an http or https address, got") as caught:
        refuse_address("url", url)
    assert caught.value.hint is not None


def test_words_can_be_taken_too() -> None:
    refuse_address("url", "scripted", "scripted")
    with pytest.raises(ConfigError, match='or https address or "scripted", got "script"'):
        refuse_address("url", "script", "scripted")


@given(st.text(alphabet="ab1.:/[]@%-_?#x \\\x7f\u00e9", max_size=20))
def test_the_client_can_read_every_address(rest: str) -> None:
    httpx2 = pytest.importorskip("httpx2")
    if is_address(f"http://{rest}"):
        assert httpx2.URL(f"http://{rest}").host
