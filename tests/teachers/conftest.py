"""One update that was played, for the tests of this folder."""

from tests.truths.conftest import played as played
from tests.truths.conftest import session as session
from tests.world import world as world
