import threading
import time

from gtr_turbo.teachers.corrector.limits import Breaker, Budget, RateLimiter


def test_a_rate_spreads_requests_evenly() -> None:
    limiter = RateLimiter(600.0, threading.Event())
    start = time.monotonic()
    assert all(limiter.wait(None) for _ in range(4))
    assert 0.29 < time.monotonic() - start < 0.6


def test_without_a_rate_nobody_waits() -> None:
    limiter = RateLimiter(None, threading.Event())
    start = time.monotonic()
    assert all(limiter.wait(None) for _ in range(1000))
    assert time.monotonic() - start < 0.2


def test_a_place_after_the_deadline_is_not_waited_for() -> None:
    limiter = RateLimiter(None, threading.Event())
    limiter.hold(60.0)
    start = time.monotonic()
    assert not limiter.wait(start + 1.0)
    assert time.monotonic() - start < 0.2


def test_a_halt_ends_waiting() -> None:
    halt = threading.Event()
    limiter = RateLimiter(None, halt)
    limiter.hold(60.0)
    threading.Timer(0.1, halt.set).start()
    start = time.monotonic()
    assert not limiter.wait(None)
    assert not limiter.wait(None)
    assert time.monotonic() - start < 1.0


def test_a_budget_is_never_exceeded() -> None:
    budget = Budget(10.0, 2.0)
    assert budget.reserve(8.0)
    budget.settle(8.0, 5.0)
    assert not budget.is_spent
    assert budget.reserve(3.0)
    budget.settle(3.0, 3.0)
    assert not budget.reserve(0.1)
    assert budget.is_spent


def test_a_reservation_waits_for_what_others_turn_out_to_cost() -> None:
    budget = Budget(10.0, 0.0)
    assert budget.reserve(8.0)
    threading.Timer(0.1, budget.settle, (8.0, 1.0)).start()
    assert budget.reserve(8.0)
    assert not budget.is_spent


def test_no_limit_is_no_limit() -> None:
    budget = Budget(None, 1e9)
    assert budget.reserve(1e9)


def test_a_breaker_opens_after_failures_in_a_row_only() -> None:
    breaker = Breaker(3, 60.0)
    assert [breaker.fail(), breaker.fail()] == [False, False]
    breaker.succeed()
    assert [breaker.fail(), breaker.fail(), breaker.fail()] == [False, False, True]
    assert breaker.is_open
    assert not breaker.allow()
    assert not breaker.fail(), "who was under way does not open it again"
    breaker.succeed()
    assert not breaker.allow(), "nor does it close it"


def test_a_breaker_opens_at_once_for_good_reasons() -> None:
    breaker = Breaker(3, 60.0)
    assert breaker.fail(for_good=True)
    assert not breaker.allow()


def test_an_open_breaker_lets_one_trial_through_after_a_pause() -> None:
    breaker = Breaker(1, 0.1)
    breaker.fail()
    assert not breaker.allow()
    time.sleep(0.12)
    assert [breaker.allow(), breaker.allow()] == [True, False]
    breaker.fail()
    assert not breaker.allow(), "the pause begins again"
    time.sleep(0.12)
    assert breaker.allow()
    breaker.abandon()
    assert breaker.allow(), "a trial without result can be repeated"
    breaker.succeed()
    assert [breaker.allow(), breaker.allow()] == [True, True]


def test_only_who_is_on_trial_ends_the_trial() -> None:
    breaker = Breaker(1, 0.05)
    breaker.fail()
    time.sleep(0.06)
    assert breaker.allow()
    for end in (breaker.succeed, breaker.fail, breaker.abandon):
        other = threading.Thread(target=end)  # its question was under way before
        other.start()
        other.join()
        assert breaker.is_open
        assert not breaker.allow()
    breaker.succeed()
    assert not breaker.is_open
