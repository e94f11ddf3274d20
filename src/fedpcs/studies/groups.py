"""Names that moved to `fedpcs.studies.results`; this module goes when nobody imports it."""

from fedpcs.studies.results import Group as Group
from fedpcs.studies.results import Series as Series
from fedpcs.studies.results import against as against
from fedpcs.studies.results import best_of as best_of
from fedpcs.studies.results import compared as compared
from fedpcs.studies.results import group as group
from fedpcs.studies.results import has_common_seed as has_common_seed
from fedpcs.studies.results import is_alike as is_alike
from fedpcs.studies.results import summary as summary
