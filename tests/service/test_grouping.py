"""Group commit: one write for many, a refusal for one, and nothing told before it is written."""

import threading

import pytest
from house_people import ALICE, CAROL

from private_ate.errors import LedgerError
from private_ate.service.store.group_commit import Group, _Piece
from private_ate.service.vocabulary import BudgetRefusal, Conflict


def insert(name):
    def act(execute):
        execute("INSERT INTO service_workers (name, beat) VALUES (?, 1)", (name,))
        return name

    return act


def refuse(execute):
    insert("undone")(execute)
    msg = "not this one"
    raise Conflict(msg)


def names(house):
    with house.store.snapshot() as execute:
        rows = execute("SELECT name FROM service_workers ORDER BY name", ()).rows
    return [name for (name,) in rows]


def test_a_refusal_undoes_its_own_piece_alone(house):
    pieces = [_Piece(insert("a")), _Piece(refuse), _Piece(insert("b"))]
    Group(house.store)._write(pieces)

    assert names(house) == ["a", "b"]
    assert [piece.value for piece in pieces] == ["a", None, "b"]
    assert isinstance(pieces[1].error, Conflict)


def test_what_fails_otherwise_is_done_one_by_one(house):
    pieces = [_Piece(insert("a")), _Piece(insert("a")), _Piece(insert("b"))]
    Group(house.store)._write(pieces)

    assert names(house) == ["a", "b"]
    assert [type(piece.error) for piece in pieces] == [type(None), LedgerError, type(None)]
    assert all(piece.is_done for piece in pieces)


def test_what_comes_in_while_one_is_written_is_written_together(small_house, monkeypatch):
    group, begun, go_on = Group(small_house.store), threading.Event(), threading.Event()
    sizes, write = [], Group._write

    def counted(self, pieces):
        sizes.append(len(pieces))
        write(self, pieces)

    def slow(execute):
        begun.set()
        assert go_on.wait(30)
        return insert("first")(execute)

    monkeypatch.setattr(Group, "_write", counted)
    told = []
    threads = [threading.Thread(target=lambda: told.append(group.run(slow)))]
    threads[0].start()
    assert begun.wait(30)
    for number in range(7):
        act = insert(str(number))
        threads.append(threading.Thread(target=lambda act=act: told.append(group.run(act))))
        threads[-1].start()
    while len(group._waiting) < 7:
        pass
    assert told == []  # nothing is told before it is written
    go_on.set()
    for thread in threads:
        thread.join()

    assert sizes == [1, 7]
    assert sorted(told) == names(small_house) == ["0", "1", "2", "3", "4", "5", "6", "first"]


def test_posts_of_one_group_cannot_share_the_last_budget(house, monkeypatch):
    house.ask("first", epsilon="0.5")
    service, kept = house.service, []
    with monkeypatch.context() as patch:
        patch.setattr(Group, "run", lambda _, act: kept.append(act))
        for key in ("a", "b", "c"):
            house.ask(key, epsilon="0.3")
    pieces = [_Piece(act) for act in kept]
    Group(service.store)._write(pieces)

    assert [type(piece.error) for piece in pieces] == [type(None), BudgetRefusal, BudgetRefusal]
    assert len(service.requests(CAROL)) == 2
    assert service.dataset("clinic")[1].left.epsilon_text == "0.2"
    assert {row.analyst for row in service.requests(CAROL)} == {ALICE.name}


def test_a_store_that_cannot_be_used_is_an_error_for_each(small_house, monkeypatch):
    def broken(_):
        msg = "the disk is full"
        raise LedgerError(msg)

    monkeypatch.setattr(type(small_house.store), "transaction", broken)

    with pytest.raises(LedgerError, match="the disk is full"):
        small_house.ask()
