import pytest
from report_samples import CLEAN, EVERY_CAUSE, FAILED_AT_IMPORT, INPUT_BOUND, make_run

from thrifty.report._loop import largest_loss, loop_cost


def test_the_loop_is_everything_but_startup_and_shutdown() -> None:
    run = make_run({"startup": 10, "compute": 5, "validation": 2, "unattributed": 1, "shutdown": 3})
    assert loop_cost(run).wall_s == pytest.approx(8)
    assert loop_cost(run).usd is None


def test_with_several_devices_the_loops_time_is_wall_time() -> None:
    run = make_run({"startup": 80, "compute": 800}, device_count=8)
    assert loop_cost(run).wall_s == pytest.approx(100)


def test_the_loops_cost_is_the_price_of_its_time() -> None:
    cost = loop_cost(EVERY_CAUSE)
    assert cost.usd == pytest.approx(cost.wall_s * 98.32 / 3600)
    assert cost.divided_by(2).usd == pytest.approx(cost.wall_s * 98.32 / 7200)


def test_the_largest_loss_is_neither_compute_nor_unattributed() -> None:
    causes = [loss and loss.cause for loss in map(largest_loss, (CLEAN, INPUT_BOUND))]
    assert causes == ["startup", "input_wait"]
    assert largest_loss(make_run({"compute": 1, "unattributed": 2})) is None


def test_a_run_that_failed_at_import_lost_its_startup() -> None:
    loss = largest_loss(FAILED_AT_IMPORT)
    assert loss is not None
    assert loss.cause == "startup"
