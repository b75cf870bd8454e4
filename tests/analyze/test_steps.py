"""What a step is, whatever the script's shape."""

from thrifty.analyze._steps import StepCounter


def test_two_optimizers_of_one_iteration_are_one_step():
    counter = StepCounter()
    for _ in range(10):
        counter.fetch()
        for _ in range(3):
            counter.backward()
        counter.step(0)
        counter.step(1)
    assert counter.total() == 10


def test_two_trainings_one_after_the_other_add_up():
    counter = StepCounter()
    for optimizer, steps in ((0, 7), (1, 5)):
        for _ in range(steps):
            counter.fetch()
            counter.backward()
            counter.step(optimizer)
    assert counter.total() == 12


def test_two_trainings_without_a_loader_add_up():
    counter = StepCounter()
    for optimizer, steps in ((0, 7), (1, 5)):
        for _ in range(steps):
            counter.backward()
            counter.step(optimizer)
    assert counter.total() == 12


def test_five_critic_steps_to_one_of_the_generator_are_five():
    counter = StepCounter()
    for iteration in range(20):
        counter.fetch()
        counter.step(0)
        if iteration % 5 == 4:
            counter.step(1)
    assert counter.total() == 20


def test_an_optimizer_for_each_parameter_is_one_step_a_pass():
    counter = StepCounter()
    for _ in range(6):
        counter.fetch()
        counter.backward()
        for optimizer in range(100):
            counter.step(optimizer)
    assert counter.total() == 6


def test_a_gan_followed_by_a_classifier_adds_its_phases():
    counter = StepCounter()
    for _ in range(4):
        counter.fetch()
        counter.step(0)
        counter.step(1)
    for _ in range(3):
        counter.fetch()
        counter.step(2)
    assert counter.total() == 7


def test_accumulated_micro_batches_are_one_step():
    counter = StepCounter()
    for batch in range(12):
        counter.fetch()
        counter.backward()
        if batch % 4 == 3:
            counter.step(0)
    assert counter.total() == 3


def test_without_an_optimizer_backward_passes_count():
    counter = StepCounter()
    for _ in range(5):
        counter.backward()
    assert counter.total() == 5
    assert counter.counts_backwards


def test_the_total_can_be_asked_at_any_time():
    counter = StepCounter()
    seen = []
    for _ in range(3):
        counter.fetch()
        counter.step(0)
        seen.append(counter.total())
    assert seen == [1, 2, 3]
