"""Flower's stores of parts of messages, in which no node can keep another's parts from being stored.

A part is known by the hash of its bytes, and announced, with the parts below it, before it is sent. Parts that can be
foreseen, an empty record or a model that is sent again, can so be announced by a node with false parts below them.
Flower then refuses the true announcement, which ends the run, or the node whose reply it was. Here the last word on a
part that has not arrived is the last announcement, and the last word on one that has are its own bytes.
"""

from __future__ import annotations

from typing import Any

from flwr.supercore.inflatable.inflatable_object import get_object_head_values_from_object_content, iterate_object_tree
from flwr.supercore.object_store.in_memory_object_store import InMemoryObjectStore
from flwr.supercore.object_store.sql_object_store import SqlObjectStore
from flwr.supercore.state.schema.objectstore_models import ObjectChild, StoredObject
from sqlalchemy import delete, insert, select, update


class SqlParts(SqlObjectStore):
    """Of a SuperLink with a database."""

    def preregister(self, run_id: int, object_tree: Any) -> list[str]:
        """Take note of the parts of a message; return those that are still to be sent."""
        with self._mutation_session() as session:
            for part in iterate_object_tree(object_tree):
                name, claimed = part.object_id, {child.object_id for child in part.children}
                stored = session.execute(
                    select(StoredObject.content, StoredObject.is_available).where(StoredObject.object_id == name)
                ).first()
                known = set(
                    session.scalars(select(ObjectChild.child_id).where(ObjectChild.parent_id == name)) if stored else ()
                )
                if stored is None or known == claimed or not _may_have(stored.content, stored.is_available, claimed):
                    continue
                for child in part.children:
                    super().preregister(run_id, child)
                session.execute(delete(ObjectChild).where(ObjectChild.parent_id == name))
                for ids, change in ((known, -1), (claimed, 1)):
                    session.execute(
                        update(StoredObject)
                        .where(StoredObject.object_id.in_(ids))
                        .values(ref_count=StoredObject.ref_count + change)
                    )
                for child_id in claimed:
                    session.execute(insert(ObjectChild).values(parent_id=name, child_id=child_id))
            return super().preregister(run_id, object_tree)


class MemoryParts(InMemoryObjectStore):
    """Of a SuperLink without one."""

    def preregister(self, run_id: int, object_tree: Any) -> list[str]:
        """Take note of the parts of a message; return those that are still to be sent."""
        with self.lock_store:
            for part in iterate_object_tree(object_tree):
                claimed, stored = [child.object_id for child in part.children], self.store.get(part.object_id)
                if stored is None or set(stored.child_object_ids) == set(claimed):
                    continue
                if _may_have(stored.content, stored.is_available, set(claimed)):
                    for child in part.children:
                        super().preregister(run_id, child)
                    for ids, change in ((stored.child_object_ids, -1), (claimed, 1)):
                        for name in ids:
                            self.store[name].ref_count += change
                    stored.child_object_ids = claimed
            return super().preregister(run_id, object_tree)


def _may_have(content: bytes, has_arrived: bool, claimed: set[str]) -> bool:
    """Say whether a part may be what is claimed: true of one that has not arrived."""
    return not has_arrived or set(get_object_head_values_from_object_content(content)[1]) == claimed
