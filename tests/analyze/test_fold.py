"""What each kind of script comes to in the books."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from thrifty.analyze import Fold
from thrifty.observe import Tick
from thrifty.observe import _events as ev

MS = 1_000_000
TIMES = (
    "startup_ns",
    "fetch_ns",
    "loop_ns",
    "validation_ns",
    "checkpoint_ns",
    "compile_ns",
    "logging_ns",
    "shutdown_ns",
    "lost_ns",
)


def times(totals):
    return {name[:-3]: getattr(totals, name) // MS for name in TIMES if getattr(totals, name)}


def test_a_plain_loop_is_start_up_then_fetches_and_work_then_shutdown(script):
    script.sleep(100).loader(3)
    for _ in range(3):
        script.train_step(fetch_ms=5, work_ms=20)
    script.fetch(0, last=True).sleep(40)
    totals = script.totals()
    assert times(totals) == {"startup": 100, "fetch": 15, "loop": 60, "shutdown": 40}
    assert (totals.steps, totals.samples, totals.epochs) == (3, 96, 1)


def test_a_first_batch_that_takes_long_is_waiting_for_input_not_start_up(script):
    script.sleep(100).loader().fetch(500).work(10).backward().step()
    assert times(script.totals()) == {"startup": 100, "fetch": 500, "loop": 10}


def test_a_pass_over_the_loader_before_training_is_start_up(script):
    script.loader()
    for _ in range(4):
        script.fetch(50)
    script.fetch(0, last=True).sleep(10).loader().train_step(fetch_ms=5, work_ms=20)
    assert times(script.totals()) == {"startup": 210, "fetch": 5, "loop": 20}


def test_without_a_loader_the_first_backward_ends_the_start_up(script):
    script.sleep(70).work(30).backward(5).step().work(30).backward(5).step()
    assert times(script.totals()) == {"startup": 100, "loop": 40}


def test_a_sleep_between_steps_is_in_the_loop(script):
    script.loader().train_step().sleep(80).train_step(fetch_ms=0, work_ms=0)
    assert times(script.totals()) == {"fetch": 2, "loop": 90}


def test_a_sleep_after_the_last_step_is_shutdown_even_before_the_loader_is_asked_again(script):
    script.loader().train_step()
    script.sleep(80)
    assert times(script.totals())["shutdown"] == 80


def test_a_script_that_was_killed_had_no_shutdown(script):
    script.loader().train_step().sleep(80)
    assert times(script.totals(cut_short=True)) == {"fetch": 2, "loop": 90}


def test_evaluation_mode_is_validation_with_its_fetches_and_its_tail(script):
    script.loader().train_step().eval().loader(grad=False)
    for _ in range(3):
        script.fetch(10, grad=False).work(5)
    script.fetch(0, grad=False, last=True).work(7).train().loader().train_step()
    totals = script.totals()
    assert times(totals)["validation"] == 52
    assert (totals.steps, totals.samples, totals.epochs) == (2, 64, None)


def test_validation_that_keeps_gradients_on_is_validation(script):
    script.loader().train_step().eval().loader()
    for _ in range(3):
        script.fetch(10).work(5)
    script.fetch(0, last=True).train().loader().train_step()
    totals = script.totals()
    assert times(totals)["validation"] == 45
    assert totals.samples == 64


def test_validation_without_evaluation_mode_is_seen_by_its_fetches_without_gradients(script):
    script.loader().train_step().loader(grad=False)
    for _ in range(3):
        script.fetch(10, grad=False).work(5)
    script.fetch(0, grad=False, last=True).sleep(8).loader().train_step()
    totals = script.totals()
    assert times(totals) == {"fetch": 4, "loop": 28, "validation": 45}
    assert totals.samples == 64


def test_training_in_evaluation_mode_is_training(script):
    script.eval().loader()
    for _ in range(5):
        script.train_step(fetch_ms=2, work_ms=10)
    totals = script.totals()
    assert times(totals) == {"fetch": 10, "loop": 50}
    assert (totals.steps, totals.samples) == (5, 160)


def test_a_script_that_never_goes_back_to_training_mode_trains_all_the_same(script):
    script.loader().train_step().eval().loader(grad=False)
    for _ in range(3):
        script.fetch(10, grad=False).work(5)
    script.fetch(0, grad=False, last=True).loader()
    for _ in range(4):
        script.train_step(fetch_ms=2, work_ms=10)
    totals = script.totals()
    assert times(totals) == {"fetch": 10, "loop": 50, "validation": 45}
    assert (totals.steps, totals.samples) == (5, 160)


def test_batches_fetched_without_gradients_but_trained_on_are_training(script):
    script.loader()
    script.train_step()
    for _ in range(5):
        script.fetch(2, grad=False).work(10).backward().step()
    totals = script.totals()
    assert times(totals) == {"fetch": 12, "loop": 60}
    assert totals.steps == 6
    assert totals.samples == 192


def test_a_last_validation_ends_when_its_loader_does_if_the_process_just_ends(script):
    script.loader().train_step().eval().loader(grad=False).fetch(10, grad=False).work(5)
    script.fetch(0, grad=False, last=True).sleep(60)
    assert times(script.totals()) == {"fetch": 2, "loop": 10, "validation": 15, "shutdown": 60}


def test_saving_the_best_weights_after_a_last_validation_leaves_the_rest_to_shutdown(script):
    script.loader().train_step().eval().loader(grad=False).fetch(10, grad=False)
    script.fetch(0, grad=False, last=True).save(20).sleep(60)
    assert times(script.totals())["shutdown"] == 60
    assert times(script.totals())["checkpoint"] == 20


def test_validation_before_the_first_step_is_validation(script):
    script.sleep(30).eval().work(50).train().work(10).backward().step()
    assert times(script.totals()) == {"startup": 40, "validation": 50}


def test_a_save_inside_a_validation_is_a_checkpoint(script):
    script.loader().train_step().eval().save(30).work(5).train().train_step()
    found = times(script.totals())
    assert (found["checkpoint"], found["validation"]) == (30, 5)


def test_compiling_inside_the_first_forward_is_compile_not_start_up(script):
    script.loader().fetch(2).span(ev.COMPILE_START, ev.COMPILE_END, 900).work(10).backward().step()
    assert times(script.totals()) == {"fetch": 2, "compile": 900, "loop": 10}


def test_logging_in_the_loop_is_logging_and_before_it_start_up(script):
    script.span(ev.LOG_START, ev.LOG_END, 5).loader().train_step()
    script.span(ev.LOG_START, ev.LOG_END, 7).train_step()
    found = times(script.totals())
    assert (found["logging"], found["startup"]) == (7, 5)


def test_what_follows_a_full_disk_is_lost_not_guessed(script):
    script.loader().train_step()
    script.mark(ev.LOST, 28)
    script.sleep(500)
    assert times(script.totals())["lost"] == 500


def test_a_script_without_training_is_all_start_up(script):
    script.sleep(100).loader().fetch(20).fetch(0, last=True)
    totals = script.totals()
    assert not totals.trained
    assert times(totals) == {"startup": 120}


def test_a_prefetching_thread_is_not_the_loop(script):
    script.loader().train_step()
    script.mark(ev.FETCH_START, 0, ev.FLAG_GRAD, full=True, thread=99)
    script.work(50).backward().step()
    script.mark(ev.FETCH_END, 32, ev.FLAG_GRAD, full=True, thread=99)
    assert times(script.totals()) == {"fetch": 2, "loop": 60}


def test_training_in_another_thread_than_the_first_is_followed(script):
    script.sleep(50)
    script.thread = 8
    script.cpu = script.queue = 0
    script.work(5).backward().step().work(20).backward().step()
    totals = script.totals()
    assert totals.steps == 2
    assert times(totals) == {"startup": 55, "loop": 20}


def test_optimizers_that_step_on_the_device_thread_inside_backward_are_counted(script):
    for _ in range(4):
        script.mark(ev.BACKWARD_START, full=True)
        for optimizer in range(10):
            script.step(optimizer, thread=33)
        script.work(5)
    assert script.totals().steps == 4


def test_endless_loaders_have_no_epochs(script):
    script.loader(-1)
    for _ in range(50):
        script.train_step()
    assert script.totals().epochs is None


def test_time_in_the_run_queue_is_kept_apart_for_fetches_and_loop(script):
    script.loader().train_step()
    script.mark(ev.FETCH_START, 0, ev.FLAG_GRAD, full=True)
    script.queued(9)
    script.mark(ev.FETCH_END, 32, ev.FLAG_GRAD, full=True)
    script.queued(30).work(10).backward().step()
    script.fetch(0, last=True)
    totals = script.totals()
    assert (totals.fetch_queue_ns // MS, totals.loop_queue_ns // MS) == (9, 30)
    assert totals.loop_cpu_ns // MS == 20


def test_ticks_count_only_where_the_loop_sleeps_in_the_loop(script):
    fold = Fold(0)
    script.loader().fetch(1).work(5).backward().step()
    asleep = Tick(loop_active=False, others_active=True, extra_queue_ns=3)
    fold.tick(asleep)
    assert fold.totals(script.now).idle_ticks == 0
    fold.feed(script.moments)
    fold.tick(asleep)
    fold.tick(Tick(loop_active=True, others_active=False, extra_queue_ns=2))
    totals = fold.totals(script.now)
    assert (totals.idle_ticks, totals.idle_active_ticks, totals.extra_queue_ns) == (1, 1, 5)


ACTIONS = st.sampled_from(
    [
        lambda s: s.train_step(),
        lambda s: s.loader(10),
        lambda s: s.fetch(3),
        lambda s: s.fetch(3, grad=False),
        lambda s: s.fetch(0, last=True),
        lambda s: s.fetch(0, grad=False, last=True),
        lambda s: s.backward(2),
        lambda s: s.step(1),
        lambda s: s.eval(),
        lambda s: s.train(),
        lambda s: s.save(4),
        lambda s: s.sleep(5),
        lambda s: s.work(5),
        lambda s: s.span(ev.COMPILE_START, ev.COMPILE_END, 6),
        lambda s: s.mark(ev.SAVE_START, full=True),
        lambda s: s.mark(ev.LOG_END, full=True),
    ]
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(actions=st.lists(ACTIONS, max_size=60), chunks=st.integers(1, 9), cut_short=st.booleans())
def test_whatever_a_script_does_every_nanosecond_is_booked_once(
    make_script, actions, chunks, cut_short
):
    script = make_script()
    for action in actions:
        action(script)
        script.now += 1
    totals = script.totals(cut_short=cut_short, chunks=chunks)
    booked = [getattr(totals, name) for name in TIMES]
    assert sum(booked) == script.now
    assert min(booked) >= 0


@pytest.mark.parametrize("chunks", [1, 2, 7])
def test_books_do_not_depend_on_how_often_they_are_looked_into(script, chunks):
    script.loader()
    for _ in range(9):
        script.train_step()
    assert script.totals(chunks=chunks) == script.totals()


def device_says(script, kind, began_ms, ended_ms, took_ms):
    script.moments.append((script.now, began_ms * MS, ended_ms * MS, took_ms * MS, 0, 0, kind))


def test_the_devices_intervals_take_no_time_of_their_own(script):
    script.loader().train_step(fetch_ms=10, work_ms=20)
    device_says(script, ev.DEVICE_FETCH, 0, 10, 3)
    device_says(script, ev.DEVICE_LOOP, 10, 30, 27)
    totals = script.totals()
    assert times(totals) == {"fetch": 10, "loop": 20}
    assert (totals.device_fetch_ns // MS, totals.device_loop_ns // MS) == (3, 27)


def test_what_the_device_did_for_a_validation_does_not_count_though_it_is_known_later(script):
    script.loader().train_step(fetch_ms=10, work_ms=20).eval().loader(grad=False)
    script.fetch(10, grad=False).work(5).train().loader().train_step(fetch_ms=10, work_ms=20)
    device_says(script, ev.DEVICE_FETCH, 30, 40, 9)
    device_says(script, ev.DEVICE_FETCH, 45, 55, 2)
    assert script.totals().device_fetch_ns // MS == 2


def test_after_the_scripts_end_everything_is_shutdown_even_in_evaluation_mode(script):
    script.loader().train_step().eval().loader(grad=False).fetch(10, grad=False).work(5)
    script.mark(ev.EXIT, full=True)
    script.sleep(90)
    assert times(script.totals()) == {"fetch": 2, "loop": 10, "validation": 15, "shutdown": 90}


def test_the_end_of_a_script_that_never_trained_is_start_up(script):
    script.sleep(50).mark(ev.EXIT, full=True)
    script.sleep(20)
    assert times(script.totals()) == {"startup": 70}


def test_a_pass_whose_every_batch_was_fetched_counts_though_nobody_asked_for_more(script):
    for _ in range(2):
        script.loader(3)
        for _ in range(3):
            script.train_step()
    assert script.totals().epochs == 2


def test_a_pass_that_was_broken_off_does_not_count(script):
    for _ in range(2):
        script.loader(4)
        for _ in range(3):
            script.train_step()
    assert script.totals().epochs is None


def test_an_evaluators_loader_that_is_begun_before_the_flip_is_no_training_pass(script):
    script.loader(2).train_step().train_step().loader(8).fetch(3).eval().work(5)
    fold = Fold(0)
    fold.feed(script.moments)
    assert (fold.pass_length, fold.epochs) == (-1, 1)


def test_compiling_within_the_loop_does_not_slow_the_rate(script):
    script.loader().train_step(fetch_ms=0, work_ms=10)
    script.span(ev.COMPILE_START, ev.COMPILE_END, 900).train_step(fetch_ms=0, work_ms=10)
    assert script.totals().training_ns // MS == 20


def light_fetch(script, ms):
    script.mark(ev.FETCH_START, 0, ev.FLAG_GRAD)
    script.work(ms)
    script.mark(ev.FETCH_END, 32, ev.FLAG_GRAD)
    return script


def test_short_fetches_without_a_look_at_the_clock_leave_the_loops_sleep_whole(script):
    script.loader().train_step()
    for _ in range(20):
        light_fetch(script, 1).work(3).sleep(6).backward().step()
    script.fetch(0, last=True)
    totals = script.totals()
    idle = totals.loop_ns - totals.loop_cpu_ns
    assert (totals.fetch_ns // MS, idle // MS) == (22, 120)


def test_a_fetch_that_turns_out_long_does_not_take_the_loops_cpu_time(script):
    script.loader().train_step()
    for _ in range(5):
        light_fetch(script, 1).work(30).backward().step()
    script.mark(ev.FETCH_START, 0, ev.FLAG_GRAD)
    script.sleep(10)
    script.mark(ev.FETCH_END, 32, ev.FLAG_GRAD, full=True)
    script.work(5).backward().step().fetch(0, last=True)
    totals = script.totals()
    assert (totals.loop_ns // MS, totals.loop_cpu_ns // MS) == (165, 165)


def test_a_step_without_backward_starts_the_training(script):
    script.sleep(100).loader()
    for _ in range(3):
        script.fetch(5).work(20).step()
    totals = script.totals()
    assert times(totals) == {"startup": 100, "fetch": 15, "loop": 60}
    assert (totals.steps, totals.samples) == (3, 96)


def test_a_whole_pass_of_which_nothing_was_trained_on_was_a_validation(script):
    script.loader().train_step().train_step().fetch(0, last=True).loader()
    for _ in range(4):
        script.fetch(10).work(5)
    script.fetch(0, last=True).loader().train_step()
    totals = script.totals()
    assert times(totals) == {"fetch": 6, "loop": 30, "validation": 60}
    assert (totals.samples, totals.epochs) == (96, 1)


def test_a_pass_that_was_broken_off_before_anything_of_it_was_trained_on_is_training_time(script):
    script.loader().train_step().loader().fetch(10).work(5).loader().train_step()
    assert times(script.totals()) == {"fetch": 14, "loop": 25}


def test_a_look_at_the_batch_in_hand_does_not_lose_its_rows(script):
    script.loader()
    for _ in range(4):
        script.fetch(2).eval().work(3).train().work(5).backward().step()
    assert script.totals().samples == 128


def test_batches_of_unknown_rows_make_the_samples_unknown_not_fewer(script):
    script.loader().train_step().fetch(2, rows=-1).work(1).backward().step()
    assert script.totals().samples is None


def test_the_loop_is_followed_when_training_goes_on_in_another_thread(script):
    script.loader().train_step()
    script.thread, script.cpu, script.queue = 8, 0, 0
    for _ in range(6):
        script.work(10).backward().step()
    totals = script.totals()
    assert totals.steps == 7
    assert times(totals)["loop"] >= 40


def test_the_length_of_a_pass_is_learned_from_a_whole_one(script):
    for _ in range(2):
        script.loader(-1)
        for _ in range(5):
            script.train_step()
        script.fetch(0, last=True)
    script.loader(-1).train_step()
    fold = Fold(0)
    fold.feed(script.moments)
    assert (fold.pass_length, fold.pass_position, fold.epochs) == (5, 1, 2)
