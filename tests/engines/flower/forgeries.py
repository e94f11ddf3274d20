"""What a lying server sends: announcements, tasks and questions that no honest client answers, and its words for each.

Honest is a run under the default settings of a client, with a unit of 0.01 and a linear model of the digits.
"""

import json

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, RecordDict

from fedpcs.engines.flower import messages

RUN, ROUNDS, NUM_PARAMETERS = "forged/fedpcs/0", 5, 650
GONE = object()
HONEST = {
    "version": 2,
    "run": RUN,
    "first_round": 0,
    "reward": [6.0] * ROUNDS,
    "mean_budget": [6.0] * ROUNDS,
    "cohort_size": [2] * ROUNDS,
    "num_clients": 3,
    "selection": "budget-aware",
    "conditions": {
        "budget_unit": 0.01,
        "budget_bounds": [0.01, 12.0],
        "rounds": ROUNDS,
        "mode": "record",
        "clip_norm": 1.0,
        "noise": "secure",
        "delta": 1e-5,
        "trust": "local",
    },
}
OWN = "by this client's own settings"
NAN, INFINITE = float("nan"), float("inf")


def long(rounds):
    """Return what changes in an announcement of so many rounds."""
    paths = {"reward": [6.0] * rounds, "mean_budget": [6.0] * rounds, "cohort_size": [2] * rounds}
    return {"conditions.rounds": rounds, **paths}


# What is changed, and words of the refusal.
ANNOUNCEMENTS = {
    "a unit of 100": ({"conditions.budget_unit": 100}, f"budget_unit must be 0.01 {OWN}, got 100"),
    "a smaller unit": ({"conditions.budget_unit": 0.001}, f"budget_unit must be 0.01 {OWN}"),
    "a unit that is no number": ({"conditions.budget_unit": NAN}, "budget_unit must be a number in"),
    "a unit in words": ({"conditions.budget_unit": "0.01"}, "budget_unit must be a number in"),
    "a unit of 10⁴⁰⁰": ({"conditions.budget_unit": 10**400}, "budget_unit must be a number in"),
    "a higher upper bound": ({"conditions.budget_bounds": [0.01, 120.0]}, f"within [0.01, 12] {OWN}"),
    "a lower lower bound": ({"conditions.budget_bounds": [0.001, 12.0]}, f"within [0.01, 12] {OWN}"),
    "bounds that fall": ({"conditions.budget_bounds": [12.0, 0.01]}, "must be two numbers that rise"),
    "one bound": ({"conditions.budget_bounds": [12.0]}, "budget_bounds must have 2 entries"),
    "bounds above what it spends first": ({"conditions.budget_bounds": [9.5, 12.0]}, "mean_budget[0] must be"),
    "more rounds": (long(101), f"rounds must be at most 100 {OWN}, got 101"),
    "a million rounds": ({"conditions.rounds": 10**6}, "rounds must be a whole number in [1, 100000]"),
    "no rounds": ({"conditions.rounds": 0}, "rounds must be a whole number in"),
    "half a round": ({"conditions.rounds": 4.5}, "rounds must be a whole number in"),
    "no noise": ({"conditions.mode": "none"}, f"mode must be 'record' {OWN}, got 'none'"),
    "the paper's noise": ({"conditions.mode": "paper"}, f"mode must be 'record' {OWN}"),
    "an unknown mode": ({"conditions.mode": "trust me"}, "mode must be one of"),
    "another clipping bound": ({"conditions.clip_norm": 10.0}, f"clip_norm must be 1 {OWN}, got 10.0"),
    "no clipping bound": ({"conditions.clip_norm": INFINITE}, "clip_norm must be a number in"),
    "seeded noise": ({"conditions.noise": "fast"}, f"noise must be 'secure' or 'exact' {OWN}, got 'fast'"),
    "a larger delta": ({"conditions.delta": 0.1}, f"delta must be at most 1e-05 {OWN}, got 0.1"),
    "a delta of 0": ({"conditions.delta": 0}, "delta must be a number strictly between 0 and 1"),
    "a trusted server": ({"conditions.trust": "aggregator"}, f"trust must be 'local' {OWN}, got 'aggregator'"),
    "an unknown trust": ({"conditions.trust": "full"}, "trust must be one of"),
    "no conditions": ({"conditions": GONE}, "announcement lacks conditions"),
    "conditions that are a list": ({"conditions": []}, "announcement's conditions lacks budget_bounds"),
    "no mode": ({"conditions.mode": GONE}, "conditions lacks mode"),
    "one condition more": ({"conditions.limit": 9}, "conditions must not have limit"),
    "another version": ({"version": 1}, "announcement must have version 2, got 1"),
    "no version": ({"version": GONE}, "announcement must have version 2"),
    "a field with escape codes": ({"x\x1b[2J": 1}, r"must not have x\x1b[2J"),
    "a negative reward": ({"reward": [6.0, -1.0, 6.0, 6.0, 6.0]}, "reward[1] must be a number in"),
    "a reward that is no number": ({"reward": [NAN] * ROUNDS}, "reward[0] must be a number in"),
    "an infinite reward": ({"reward": [INFINITE] * ROUNDS}, "reward[0] must be a number in"),
    "a reward in words": ({"reward": ["much"] * ROUNDS}, "reward[0] must be a number in"),
    "one reward for all": ({"reward": 6.0}, "reward must have an entry for each of 5 rounds, got 6.0"),
    "fewer rewards": ({"reward": [6.0]}, "reward must have an entry for each of 5 rounds, got 1"),
    "more means": ({"mean_budget": [6.0] * 6}, "mean_budget must have an entry for each of 5 rounds, got 6"),
    "a mean of 0": ({"mean_budget": [0.0] * ROUNDS}, "mean_budget[0] must be a number in [0.01, 12]"),
    "a mean of 900": ({"mean_budget": [6.0] * 4 + [900.0]}, "mean_budget[4] must be a number in [0.01, 12]"),
    "a mean that is no number": ({"mean_budget": [NAN] * ROUNDS}, "mean_budget[0] must be a number in"),
    "nobody drawn": ({"cohort_size": [0] * ROUNDS}, "cohort_size[0] must be a whole number in [1, 3]"),
    "more drawn than there are": ({"cohort_size": [4] * ROUNDS}, "cohort_size[0] must be a whole number in [1, 3]"),
    "half a client drawn": ({"cohort_size": [1.5] * ROUNDS}, "cohort_size[0] must be a whole number in"),
    "fewer cohorts": ({"cohort_size": [2]}, "cohort_size must have an entry for each of 5 rounds, got 1"),
    "no clients": ({"num_clients": 0}, "num_clients must be a whole number in [1, 1e+07]"),
    "10¹² clients": ({"num_clients": 10**12}, "num_clients must be a whole number in [1, 1e+07]"),
    "true clients": ({"num_clients": True}, "num_clients must be a whole number in"),
    "a round before the first": ({"first_round": -1}, "first_round must be a whole number in [0, 4]"),
    "a round after the last": ({"first_round": 5}, "first_round must be a whole number in [0, 4]"),
    "a round that is no number": ({"first_round": NAN}, "first_round must be a whole number in [0, 4]"),
    "an unknown selection": ({"selection": "whom I like"}, "selection must be one of"),
    "a run without a name": ({"run": ""}, "run must be a name of 1 to 200 printable characters"),
    "a run with a line feed": ({"run": "a\nfedpcs: done"}, r"printable characters, got a\nfedpcs: done"),
    "a run of 10,000 letters": ({"run": "x" * 10_000}, "run must be a name of 1 to 200 printable characters"),
    "a run that is a number": ({"run": 3}, "run must be a name of 1 to 200 printable characters"),
}
# Texts that are no announcement.
TEXTS = {
    "no JSON": ("{", "message's text is not JSON"),
    "a list": ("[]", "message's text must be an object, got a list"),
    "a list in a list in a list": ("[" * 100_000, "message's text is not JSON"),
    "a number of 5,000 digits": ('{"version": ' + "9" * 5000 + "}", "message's text is not JSON"),
}
TASK = {"run": RUN, "round_index": 2, "client": 0, "nonce": "nonce", "budget": 1, "measures": [], "max_samples": None}
TASKS = {
    "a larger budget": ({"budget": 10**9}, "Nothing is released"),
    "a smaller budget": ({"budget": 1}, "Nothing is released"),
    "a budget of 0": ({"budget": 0}, "Nothing is released"),
    "no budget": ({"budget": None}, "must name a budget"),
    "a negative budget": ({"budget": -1}, "a task's 'budget' is wrong"),
    "a budget of 2⁶⁴": ({"budget": 2**64}, "a task's 'budget' is wrong"),
    "a budget that is no number": ({"budget": NAN}, "a task's 'budget' is wrong"),
    "a true budget": ({"budget": True}, "a task's 'budget' is wrong"),
    "a round that was not announced": ({"round_index": 99}, "no budget was agreed for round 99"),
    "a round before the first": ({"round_index": -1}, "a task's 'round_index' is wrong"),
    "a round in words": ({"round_index": "2"}, "a task's 'round_index' is wrong"),
    "round 2⁷⁰": ({"round_index": 2**70}, "a task's 'round_index' is wrong"),
    "a run that was not announced": ({"run": "other"}, "no budget was agreed for round 2 of run 'other'"),
    "a run with escape codes": ({"run": "\x1b[2J\n"}, r"of run '\\x1b[2J\\n'"),
    "a run that is a list": ({"run": []}, "a task's 'run' is wrong"),
    "a long nonce": ({"nonce": "n" * 1001}, "a task's 'nonce' is wrong"),
    "a negative client": ({"client": -1}, "a task's 'client' is wrong"),
    "measures of its records": ({"measures": ["loss"]}, "does not tell loss"),
    "an unknown measure": ({"measures": ["labels"]}, "a task's 'measures.0' is wrong"),
    "no records at all": ({"max_samples": 0}, "a task's 'max_samples' is wrong"),
    "records in words": ({"max_samples": "9"}, "a task's 'max_samples' is wrong"),
    "one field more": ({"epsilon": 9}, "a task's 'epsilon' is wrong"),
    "one field less": ({"nonce": GONE}, "a task's 'nonce' is wrong"),
}
MODELS = {
    "a smaller model": np.zeros(10, np.float32),
    "a larger model": np.zeros(10**6, np.float32),
    "a model of other numbers": np.zeros(NUM_PARAMETERS, np.float64),
    "a table": np.zeros((65, 10), np.float32),
    "a model that is no number": np.full(NUM_PARAMETERS, NAN, np.float32),
}
MODEL_WORDS = "the model must be 650 finite numbers of type float32"


def changed(honest, changes):
    """Return honest values with others under dotted keys; GONE takes one out."""
    values = json.loads(json.dumps(honest))
    for key, value in changes.items():
        *path, last = key.split(".")
        table = values
        for name in path:
            table = table[name]
        table[last] = value
        if value is GONE:
            del table[last]
    return values


def content(values, model=None):
    """Return values as a message, with a model beside them or none."""
    text = values if isinstance(values, str) else json.dumps(values)
    records = {"text": ConfigRecord({"json": text})}
    if model is not None:
        records["numbers"] = ArrayRecord({"values": Array(model)})
    return RecordDict(records)


def agreement():
    """Return the honest announcement."""
    return messages.TERMS, content(HONEST)


def forged(budget):
    """Give every forgery by name: the kind of message, its content, and words of the refusal.

    Args:
        budget: What was agreed for the round of tasks, in billionths.
    """
    for name, (changes, words) in ANNOUNCEMENTS.items():
        yield f"announced: {name}", messages.TERMS, content(changed(HONEST, changes)), words
    for name, (text, words) in TEXTS.items():
        yield f"announced: {name}", messages.TERMS, content(text), words
    model, honest = np.zeros(NUM_PARAMETERS, np.float32), {**TASK, "budget": budget}
    for name, (changes, words) in TASKS.items():
        yield f"task: {name}", messages.TRAIN, content(changed(honest, changes), model), words
    for name, values in MODELS.items():
        yield f"task: {name}", messages.TRAIN, content(honest, values), MODEL_WORDS
    yield "task: no model", messages.TRAIN, content(honest), "message must hold one array of numbers"
    question = {"question": "loss", "task": honest}
    yield "question: loss", messages.QUESTION, content(question, model), "does not tell loss"
    labels = {**question, "question": "labels"}
    yield "question: labels", messages.QUESTION, content(labels, model), "question must be one of"
    yield "question: no task", messages.QUESTION, content({"question": "loss"}, model), "a task's 'text' is wrong"


def sent(node, kind, told):
    """Return a message that may be sent as often as one likes."""
    return Message(told, node, kind, ttl=600.0)
