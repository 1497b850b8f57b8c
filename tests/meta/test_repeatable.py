"""Releases in tests repeat by the name of their test."""

import random
from threading import Thread

from private_ate.privacy.entropy import SecureEntropy


def test_a_thread_that_draws_bytes_takes_none_of_the_test_s_own(request):
    drawn = [SecureEntropy().draw(8)]
    thread = Thread(target=SecureEntropy().draw, args=(8,))
    thread.start()
    thread.join()
    drawn.append(SecureEntropy().draw(8))

    stream = random.Random(request.node.nodeid)  # as the suite begins it
    assert drawn == [stream.randbytes(8), stream.randbytes(8)]
