"""Tests all metrics with the kit for authors of plug-ins."""

import pytest

from leporello.metrics import METRICS
from leporello.testing import MetricContract
from leporello.testing.contract import Maker

JAVA = ("bleu_coco", "meteor_coco", "rouge_l_coco")  # see tests/metrics/test_golden.py


class TestMetrics(MetricContract):
    """Metrics without Java."""

    tolerance = 1e-9

    @pytest.fixture(params=[name for name in METRICS if name not in JAVA])
    def maker(self, request: pytest.FixtureRequest) -> Maker:
        return METRICS[request.param]
