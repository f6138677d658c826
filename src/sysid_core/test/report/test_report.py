# SPDX-License-Identifier: Apache-2.0
"""The report is one file that needs nothing else, and says what was found."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import plotly.graph_objects
import pytest

from sysid_core.identification import Identification, IdentifyConfig, identify
from sysid_core.recording import Recording
from sysid_core.report import figures
from sysid_core.report.advice import advice
from sysid_core.report.page import write_report
from sysid_core.robot import load_robot

LARGEST = 6e6  # bytes; most of it is the plotting library


@pytest.fixture(scope="module")
def recording(make_recording: Callable[..., Recording]) -> Recording:
    robot = load_robot("ur10")
    vector = robot.consistent_nominal.copy()
    vector[robot.layout.term("coulomb")] = 3.0
    return make_recording(robot, vector, duration=15.0, noise=0.2)


@pytest.fixture(scope="module")
def found(recording: Recording) -> Identification:
    return identify(load_robot("ur10"), recording)


class _Tags(HTMLParser):
    """Collects what a page would load from elsewhere, and checks that tags close."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [v or "" for k, v in attrs if k in ("src", "href")]
        if tag not in ("meta", "br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_is_one_small_file_that_loads_nothing(found: Identification, tmp_path: Path) -> None:
    write_report(found, tmp_path, source="run <1>")
    page = tmp_path / "report.html"
    assert page.stat().st_size < LARGEST
    tags = _Tags()
    text = page.read_text(encoding="utf-8")
    tags.feed(text)
    assert tags.loaded == []
    assert tags.open == []
    assert "run &lt;1&gt;" in text
    figures = re.findall(r'"modeBarButtonsToRemove": (\[.*?\])', text)
    assert len(figures) == 6
    assert all("sendChartToCloud" in figure for figure in figures)
    for heading in ("Torques", "Residuals", "Friction", "consistency", "What to do next"):
        assert re.search(f"<h2>[^<]*{heading}", text)
    for joint in found.robot.joint_names:
        assert joint in text


@pytest.mark.parametrize(
    "draw",
    [
        lambda found: figures.torque_figure(found.curves),
        lambda found: figures.residual_figure(found.curves),
        figures.friction_figure,
        figures.mass_figure,
        figures.consistency_figure,
        figures.determination_figure,
    ],
)
def test_figures_have_the_form_that_plotly_knows(
    found: Identification, draw: Callable[[Identification], figures.Figure]
) -> None:
    figure = draw(found)
    checked = plotly.graph_objects.Figure(data=figure.data, layout=figure.layout)
    assert len(checked.data) == len(figure.data)
    for trace in checked.data:
        assert (trace.xaxis or "x").replace("x", "xaxis").removesuffix("1") in checked.layout


def test_advice_follows_from_the_findings(found: Identification, recording: Recording) -> None:
    last = advice(found)[-1]
    assert "sysid validate" in last
    everything = identify(load_robot("ur10"), recording, IdentifyConfig(train=1.0))
    assert any("--train" in step for step in advice(everything))
    impossible = replace(
        found,
        estimate=replace(found.estimate, consistency=-np.ones_like(found.estimate.consistency)),
    )
    assert "impossible" in advice(impossible)[0]


def test_scales_alone_ask_for_no_other_motion(found: Identification) -> None:
    known = np.ones_like(found.estimate.determined)
    stretched = replace(found.estimate, determined=known, condition=1e6)
    assert not any("excite" in step for step in advice(replace(found, estimate=stretched)))
    lacking = replace(stretched, determined=np.where(np.arange(len(known)) < 2, 0.0, known))
    assert any("excite" in step for step in advice(replace(found, estimate=lacking)))
    for robot in ("solo12", "digit_left_leg"):  # for which no exciting motion can be designed
        other = replace(found, estimate=lacking, robot=load_robot(robot))
        assert any("to the prior" in step for step in advice(other))
        assert not any("excite" in step for step in advice(other))
