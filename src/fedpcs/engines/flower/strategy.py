"""Our samplers and rules for a Flower app that stays its owner's: a strategy in the place of Flower's `FedAvg`.

The clients are not ours. They answer as in Flower's own examples, with their model and a `MetricRecord`, and all that
the server knows of a client is what it told when it was last heard (`reported` has the list of metrics).

Norms and distances of updates are taken here. Clients not yet heard are taken for the mean of those that were: before
the first round all are alike, and it is drawn so. Inclusion probabilities are right all the same, and `hajek` needs
no sizes but the cohort's; `horvitz-thompson` needs the size of the whole federation, an estimate until all were heard.
With `query=True` each client is asked before its first draw; its app then needs a `query` handler that replies with the
same metrics, which stock apps lack.

A draw depends on the seed, the round and the clients in the order of their numbers. They are numbered by Flower's node
ids, which are random; by the metric `partition-id` if they tell it when asked: then another run draws the same clients.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg, Result
from numpy.typing import NDArray

from fedpcs import _validate, sampling
from fedpcs._random import generator
from fedpcs._validate import FloatArray
from fedpcs.engines.flower import reported
from fedpcs.engines.flower.guarded_grid import GuardedGrid
from fedpcs.engines.flower.known_clients import KnownClients, grown
from fedpcs.engines.flower.named_arrays import flat, record_of
from fedpcs.engines.flower.replies import Answer, Replies, Sent
from fedpcs.engines.flower.reported import MAY_BE_SILENT, MEASURES, METRICS, Reported
from fedpcs.errors import InvalidInput, QuorumNotReached
from fedpcs.learning.aggregate import step, weighted_sum
from fedpcs.learning.closing import Weighed, feedback_of, median_where_silent, weigh_heard
from fedpcs.sampling import RULES, Draw, Sampler, View

# What samplers read before the draw that no reply has told: why not, and what to set instead.
_UNSERVED: Mapping[str, tuple[str, str]] = {
    "update_norm": ("every client would have to train before anyone is drawn", "norms='last-known'"),
    "loss": ("candidates would have to be asked for their loss at the present model", "losses='last-known'"),
    "gradient_distance": ("every client would have to send a gradient before the draw", "information='practical'"),
    "gradient_variance": ("every client would have to measure it before the draw", "information='practical'"),
}
_POLL_SECONDS = 0.2
_logger = logging.getLogger("flwr")  # Flower's own: one log, in order


@dataclass(frozen=True)
class Round:
    """What became of a round.

    Attributes:
        server_round: As Flower counts, from one.
        drawn: Node ids, in client order.
        heard: Those whose model counted, in client order.
        rule: By which they were weighed.
        weights: (heard,) of their updates.
    """

    server_round: int
    drawn: tuple[int, ...]
    heard: tuple[int, ...]
    rule: str
    weights: tuple[float, ...]


@dataclass(frozen=True)
class _Open:
    """A round that has been drawn: what was sent, and by what it was drawn."""

    sent: Sent
    view: View
    draw: Draw


class SampledStrategy(FedAvg):
    """Draws cohorts with any sampler and weighs their updates by any rule; in all else it is Flower's `FedAvg`.

    A reply that cannot be used (an error, numbers that are not finite, another shape, missing keys) is left out, logged
    and kept in `refused`; those heard stand for it by their chance of answering. If nobody is heard the model stays.

    Under `horvitz-thompson` and `paper` one round's weights need not add up to one: the new model is no average of
    clients' models, and statistics that BatchNorm keeps in a model may leave their range. Take `hajek` for those.

    Args:
        sampler: A name that `make_sampler` knows, or a sampler.
        cohort_size: K, how many clients to draw; all if fewer can be.
        rule: How updates are weighed; `default`: `precision` in rounds whose clients tell the power of their noise,
            `normalised` in others.
        weight_cap: Most a weight may exceed that of uniform draws by, as a factor; None: no cap.
        by_design: For `precision`: whether those heard speak for the others in proportion to their expansion.
        settings: Of the sampler, if it is named.
        seed: Of the draws.
        query: Whether to ask each client, before its first draw, what it would tell with its first reply.
        metric_names: Other names for the metrics of `reported.METRICS`, by field.
        learning_rate: Of the clients' local steps, for `delta` where it hears gradient variances.
        outlier_factor: Updates longer than this many times the round's median are left out, unless clients tell of
            noise or of budgets.
        patience_seconds: How long to wait for nodes, and for answers to the query. The first round waits for
            `min_available_nodes`, at least K; later ones wait for anyone.
        fedavg: `FedAvg`'s other settings, such as fraction_evaluate or weighted_by_key.

    Attributes:
        history: What became of each round.
        refused: Replies that were left out.

    Raises:
        InvalidInput: The sampler needs what clients cannot tell, or do not; or the rule what the sampler has not.
        QuorumNotReached: Nobody can be drawn.
    """

    def __init__(
        self,
        sampler: str | Sampler = "fedpcs",
        *,
        cohort_size: int,
        rule: str = "default",
        weight_cap: float | None = None,
        by_design: bool = False,
        settings: Mapping[str, Any] | None = None,
        seed: int = 0,
        query: bool = False,
        metric_names: Mapping[str, str] | None = None,
        learning_rate: float | None = None,
        outlier_factor: float = 10.0,
        patience_seconds: float = 600.0,
        **fedavg: Any,
    ) -> None:
        for name in ("fraction_train", "min_train_nodes"):
            if name in fedavg:
                raise InvalidInput(f"{name} has no part here, got {fedavg[name]!r}. cohort_size takes its place.")
        super().__init__(**fedavg)
        self._sampler = _servable(sampler, settings)
        self._cohort_size = _validate.integer("cohort_size", cohort_size, low=1)
        self._rule = _validate.choice("rule", rule, ("default", *RULES, "own"))
        self._weight_cap = None if weight_cap is None else _validate.number("weight_cap", weight_cap, low=1.0)
        self._by_design = _validate.boolean("by_design", by_design)
        if self._by_design and self._rule != "precision":
            raise InvalidInput(f"by_design is a setting of precision, got it with {rule}. Set rule='precision'.")
        self._seed = _validate.integer("seed", seed, low=0)
        self._query = _validate.boolean("query", query)
        self._metric_names = reported.metric_names(metric_names)
        self._learning_rate = _rate(self._sampler, learning_rate)
        self._goes_by = {*self._sampler.reads, *self._sampler.hears}
        if "gradient_distance" in self._goes_by:  # of updates over the learning rate times the local steps
            self._goes_by.add("local_steps")
        factor = _validate.number("outlier_factor", outlier_factor, low=1.0)
        self._replies = Replies(self.weighted_by_key, self._metric_names, self._goes_by, factor)
        self._patience_seconds = _validate.positive("patience_seconds", patience_seconds)
        self.history: list[Round] = []
        self.refused = self._replies.refused
        self._clients = KnownClients()
        self._memory: Mapping[str, FloatArray] = {}
        self._last_draw = (0, 0)
        self._open: _Open | None = None

    def start(self, grid: Grid, *settings: Any, **named: Any) -> Result:
        """Run all rounds, as Flower's strategies do; a reply that cannot even be read is left out like any other."""
        return super().start(GuardedGrid(grid, _logger.warning), *settings, **named)

    def summary(self) -> None:
        """Log how cohorts are drawn and updates weighed, and what must be said of that."""
        _logger.info("\t├──> Sampler: %r", self._sampler)
        _logger.info("\t└──> Rule: '%s' | cohort size: %d | seed: %d", self._rule, self._cohort_size, self._seed)
        if label := sampling.disclosure(self._sampler).label:
            _logger.warning("%s.", label)

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Draw the cohort of a round; called again for the same round, draw another."""
        connected = self._meet(grid, server_round)
        view = self._view(server_round - 1, np.isin(self._clients.nodes, list(connected)))
        attempt = self._last_draw[1] + 1 if self._last_draw[0] == server_round else 0
        self._last_draw = (server_round, attempt)
        cohort = sampling.draw(self._sampler, view, generator(self._seed, "cohort", server_round - 1, attempt))
        # Raises before anyone has worked in vain.
        rule = sampling.settle_rule(self._rule, view.need("noise_power"))
        sampling.weigh(rule, cohort, view, drift=1.0, by_design=self._by_design, cap=self._weight_cap)
        model = {name: array.numpy() for name, array in arrays.items()}
        sent = Sent(server_round, cohort.clients.tolist(), model, flat(model))
        self._open = _Open(sent, view, cohort)
        _logger.info("configure_train: Sampled %d nodes (out of %d)", cohort.clients.size, len(connected))
        return self._messages(MessageType.TRAIN, cohort.clients.tolist(), server_round, arrays, config)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Weigh the updates that came back and move the model; None if nobody was heard."""
        opened, self._open = self._open, None
        if opened is None or opened.sent.server_round != server_round:
            raise InvalidInput(f"round {server_round} must be drawn by configure_train before it is aggregated.")
        answers = self._replies.answers(opened.sent, self._clients, replies)
        _logger.info("aggregate_train: %d of %d nodes heard", len(answers), opened.draw.clients.size)
        for answer in answers:
            self._clients.report(answer.client, answer.reported)
        self._check_reported()
        # With sizes and noise as they are known now: the cohort's are its own.
        opened = replace(opened, view=replace(opened.view, **self._clients.sizes_and_noise()))
        rule = sampling.settle_rule(self._rule, np.array([answer.reported["noise_power"] for answer in answers]))
        weighed = weigh_heard(
            rule,
            opened.draw,
            opened.view,
            np.array([answer.client for answer in answers], dtype=np.int64),
            [answer.update for answer in answers],
            self._clients.num_drawn,
            self._clients.num_heard,
            by_design=self._by_design,
            cap=self._weight_cap,
        )
        self._learn(opened, answers)
        self._count(opened, answers, weighed)
        if not answers:
            return None, None
        metrics = self._replies.averaged("train", self.train_metrics_aggr_fn, [answer.content for answer in answers])
        moved = step(opened.sent.values, weighted_sum([answer.update for answer in answers], weighed.weights))
        if not np.isfinite(moved).all():
            _logger.warning("round %d: the new model's numbers would not be finite; the old one stays.", server_round)
            return None, metrics
        return record_of(opened.sent.arrays, moved), metrics

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Choose the nodes that evaluate the model, each as likely as any other."""
        connected = set(grid.get_node_ids()) if self.fraction_evaluate > 0.0 else set()
        pool = [client for client, node in enumerate(self._clients.nodes) if node in connected]
        num_wanted = min(len(pool), max(int(self.fraction_evaluate * len(pool)), self.min_evaluate_nodes))
        chosen = generator(self._seed, "evaluation", server_round).permutation(pool)[:num_wanted]
        return self._messages(MessageType.EVALUATE, sorted(chosen.astype(int).tolist()), server_round, arrays, config)

    def aggregate_evaluate(self, server_round: int, replies: Iterable[Message]) -> MetricRecord | None:
        """Average what clients say of the model; None if nobody says what can be used."""
        contents = [reply.content for reply, _ in self._replies.readable(server_round, "evaluate", replies)]
        return self._replies.averaged("evaluate", self.evaluate_metrics_aggr_fn, contents) if contents else None

    def _messages(
        self, kind: str, clients: Iterable[int], server_round: int, arrays: ArrayRecord, config: ConfigRecord
    ) -> list[Message]:
        settings = ConfigRecord({**config, "server-round": server_round})
        content = RecordDict({self.arrayrecord_key: arrays, self.configrecord_key: settings})
        return [Message(content, self._clients.nodes[client], kind) for client in clients]

    def _meet(self, grid: Grid, server_round: int) -> set[int]:
        """Return the connected nodes, having numbered those that are new."""
        wanted = 1 if self._clients.nodes else max(self.min_available_nodes, self._cohort_size)
        until = time.monotonic() + self._patience_seconds
        while len(connected := set(grid.get_node_ids())) < wanted:
            if time.monotonic() > until:
                raise QuorumNotReached(
                    f"round {server_round}: {len(connected)} of {wanted} nodes are connected after "
                    f"{self._patience_seconds:g} s. Start more of them, or draw fewer."
                )
            time.sleep(_POLL_SECONDS)
        newcomers = sorted(connected - set(self._clients.nodes))
        metrics: dict[int, Reported] = {}
        if self._query and newcomers:
            questions = [Message(RecordDict(), node, MessageType.QUERY) for node in newcomers]
            replies = grid.send_and_receive(questions, timeout=self._patience_seconds)
            readable = self._replies.readable(server_round, "query", replies)
            metrics = {reply.metadata.src_node_id: one for reply, one in readable}
        self._clients.add(newcomers, metrics)
        num_clients = len(self._clients.nodes)
        self._memory = grown(self._memory, sampling.start(self._sampler, num_clients), num_clients)
        return connected

    def _view(self, round_index: int, is_connected: NDArray[np.bool_]) -> View:
        reads, budget = self._sampler.reads, self._clients.column("budget")
        is_spent = (budget == 0.0) & ("budget" in reads)
        can_be_drawn = is_connected & ~is_spent
        if not can_be_drawn.any():
            raise QuorumNotReached(f"round {round_index + 1}: no client with a budget left is connected. Stop here.")
        return sampling.make_view(
            min(self._cohort_size, int(can_be_drawn.sum())),
            is_available=can_be_drawn,
            round_index=round_index,
            memory=self._memory,
            budget=self._clients.budgets(is_spent) if "budget" in reads else None,
            label_counts=reported.label_counts(self._clients.reported) if "label_counts" in reads else None,
            **self._clients.sizes_and_noise(),
        )

    def _check_reported(self) -> None:
        """Raise if clients have been heard, more than one, and none has told what the sampler goes by."""
        needed = self._goes_by & set(METRICS) - MAY_BE_SILENT
        if (field := reported.unreported(self._clients.reported, needed)) is not None:
            raise InvalidInput(
                f"sampler {self._sampler.name!r} goes by {field}, and no reply tells {self._metric_names[field]!r}. "
                "Add it to the MetricRecord of the client app's train reply, or say what it is called there: "
                f"metric_names={{{field!r}: …}}."
            )

    def _learn(self, opened: _Open, answers: Sequence[Answer]) -> None:
        """Let the sampler hear what came back, unless all are silent on what it learns from."""
        if not answers:
            return
        arrays: dict[str, FloatArray] = {
            "update_norm": np.array([answer.norm for answer in answers]),
            "noise_power": np.array([answer.reported["noise_power"] for answer in answers]),
        }
        for name in {"local_steps", *MEASURES} & self._goes_by:
            values = reported.column([answer.reported for answer in answers], name)
            if not np.isnan(values).all():
                arrays[name] = median_where_silent(values)
            elif name not in MAY_BE_SILENT:
                return
        feedback = feedback_of(
            self._sampler,
            opened.view,
            np.array([answer.client for answer in answers], dtype=np.int64),
            [answer.update for answer in answers],
            learning_rate=self._learning_rate,
            **arrays,
        )
        self._memory = sampling.remember(self._sampler, opened.view, opened.draw, feedback)

    def _count(self, opened: _Open, answers: Sequence[Answer], weighed: Weighed) -> None:
        drawn, heard = opened.draw.clients.tolist(), [answer.client for answer in answers]
        self._clients.count(drawn, heard)
        asked, answered = (tuple(self._clients.nodes[client] for client in clients) for clients in (drawn, heard))
        weights = tuple(weighed.weights.tolist())
        self.history.append(Round(opened.sent.server_round, asked, answered, weighed.rule, weights))


def _servable(sampler: str | Sampler, settings: Mapping[str, Any] | None) -> Sampler:
    """Return the sampler if clients can tell it what it reads, or say why not."""
    if settings and not isinstance(sampler, str):
        raise InvalidInput("settings are for a sampler given by name, got them with one that is made already.")
    made = sampling.make_sampler(sampler, **(settings or {})) if isinstance(sampler, str) else sampler
    for field in made.reads:
        if field in _UNSERVED:
            why, instead = _UNSERVED[field]
            raise InvalidInput(
                f"sampler {made.name!r} reads {field} before it draws: {why}, and Flower's strategies send work to the "
                f"cohort alone. Where the sampler has it, set {instead}; or use fedpcs's own app, `fedpcs run` with "
                "engine.kind = 'flower'."
            )
    return made


def _rate(sampler: Sampler, learning_rate: float | None) -> float:
    """Return the clients' learning rate; 1 where it cancels."""
    if learning_rate is not None:
        return _validate.positive("learning_rate", learning_rate)
    if {"gradient_distance", "gradient_variance"} <= set(sampler.hears):
        raise InvalidInput(
            f"learning_rate must be given for sampler {sampler.name!r}, got None. It weighs how far clients' gradients "
            "are apart, which are updates over learning_rate·(local steps), against their variance."
        )
    return 1.0
