"""The broker as many see it at once: it is asked by one of them, once in a while."""

import threading

import pytest

from api import broker
from api.broker import BrokerView


class Broker:
    """A broker that takes its time to answer, and the clock."""

    def __init__(self) -> None:
        self.asked = 0
        self.moment = 100.0
        self.answers = True
        self.is_asked = threading.Event()
        self.may_answer = threading.Event()

    def broker_answers(self) -> bool:
        self.asked += 1
        self.is_asked.set()
        assert self.may_answer.wait(10)
        return self.answers

    def monotonic(self) -> float:
        return self.moment


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Broker:
    asked = Broker()
    monkeypatch.setattr(broker, "wakeups", asked)
    monkeypatch.setattr(broker, "time", asked)
    return asked


def test_it_is_asked_once_a_second(asked: Broker) -> None:
    asked.may_answer.set()
    view = BrokerView()
    assert [view.answers(), view.answers(), asked.asked] == [True, True, 1]
    asked.answers = False
    asked.moment += 2 * broker.SEEN_S
    assert [view.answers(), view.answers(), asked.asked] == [False, False, 2]


def test_while_one_waits_for_it_the_others_are_told_what_it_was(asked: Broker) -> None:
    asked.may_answer.set()
    view = BrokerView()
    assert view.answers()
    asked.moment += 2 * broker.SEEN_S
    asked.answers = False
    asked.may_answer.clear()
    asked.is_asked.clear()
    waiting = threading.Thread(target=view.answers)
    waiting.start()
    assert asked.is_asked.wait(10)
    assert [view.answers() for _ in range(50)] == [True] * 50
    assert asked.asked == 2
    asked.may_answer.set()
    waiting.join()
    assert not view.answers()
