# SPDX-License-Identifier: Apache-2.0
"""Loops: they close everywhere, their maps are derivatives, and bad loops are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sysid_core.arrays import FloatArray
from sysid_core.dynamics.closed_chain import ClosedChainDynamics
from sysid_core.errors import ModelError, RobotError
from sysid_core.online.gate import GateState
from sysid_core.online.pipeline import OnlineIdentifier
from sysid_core.recording import Samples
from sysid_core.robot import Robot, load_robot, parse_description
from sysid_core.robot.loop_check import check_loops, random_closed_configurations
from sysid_core.robot.loops import ClosedConfiguration, LoopClosure

WORKSPACE = Path(__file__).resolve().parents[4]
GROUND, CRANK, COUPLER, ROCKER = 1.0, 0.3, 0.9, 0.7  # [m], a crank-rocker by Grashof's condition

FourBar = Callable[..., Robot]


def link(name: str, length: float) -> str:
    return (
        f'<link name="{name}"><inertial><origin xyz="{0.5 * length} 0 0"/><mass value="1"/>'
        '<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>'
    )


def joint(name: str, parent: str, child: str, x: float) -> str:
    return (
        f'<joint name="{name}" type="continuous"><parent link="{parent}"/><child link="{child}"/>'
        f'<origin xyz="{x} 0 0"/><axis xyz="0 1 0"/></joint>'
    )


@pytest.fixture
def four_bar(tmp_path: Path) -> FourBar:
    """Build four-bar linkages in the x–z plane: a point closes crank and rocker at the coupler."""

    def build(*, coupler: float = COUPLER, **changes: Any) -> Robot:
        urdf = "".join(
            [
                '<robot name="four_bar"><link name="ground"/>',
                link("crank", CRANK),
                link("coupler", coupler),
                link("rocker", ROCKER),
                joint("q_crank", "ground", "crank", 0.0),
                joint("q_coupler", "crank", "coupler", CRANK),
                joint("q_rocker", "ground", "rocker", GROUND),
                "</robot>",
            ]
        )
        (tmp_path / "four_bar.urdf").write_text(urdf)
        description = {
            "name": "four_bar",
            "urdf": "four_bar.urdf",
            "joints": {"passive": ["q_coupler", "q_rocker"]},
            "loops": [loop("pin", "coupler", coupler, "rocker", ROCKER)],
            **changes,
        }
        return load_robot(parse_description(description, source=tmp_path / "four_bar.yaml"))

    return build


def loop(name: str, a: str, xa: float, b: str, xb: float, kind: str = "point") -> dict[str, Any]:
    return {
        "name": name,
        "type": kind,
        "frame_a": {"link": a, "xyz": [xa, 0.0, 0.0]},
        "frame_b": {"link": b, "xyz": [xb, 0.0, 0.0]},
    }


def rocker_angles(crank: float) -> tuple[float, float]:
    """Return both rocker angles that close the linkage: circles about crank pin and ground."""
    pin = CRANK * np.array([np.cos(crank), -np.sin(crank)])
    across = np.array([GROUND, 0.0]) - pin
    distance = np.hypot(*across)
    inner = np.arccos((ROCKER**2 + distance**2 - COUPLER**2) / (2.0 * ROCKER * distance))
    direction = np.arctan2(-across[1], across[0]) + np.pi  # angles turn about +y: z is down
    return direction - inner, direction + inner


@pytest.fixture(scope="module", params=["digit_left_leg", "digit_right_leg"])
def leg(request: pytest.FixtureRequest) -> LoopClosure:
    return LoopClosure(load_robot(WORKSPACE / "config" / "robots" / f"{request.param}.yaml"))


@pytest.fixture(scope="module")
def states(leg: LoopClosure) -> tuple[FloatArray, FloatArray]:
    """Return closed configurations all over the range of motion, and velocities."""
    q = random_closed_configurations(leg, 60, seed=3)
    return q, np.random.default_rng(4).normal(size=(len(q), 6))


def test_loops_close_over_the_whole_range_of_motion(
    leg: LoopClosure, states: tuple[FloatArray, FloatArray]
) -> None:
    q, _ = states
    assert len(q) == 60
    assert max(np.abs(leg.equations.residual(each)).max() for each in q) < 1e-10
    spread = np.ptp(q[:, leg.equations.actuated], axis=0)
    limits = leg.robot.limits
    full = (limits.upper - limits.lower)[leg.equations.actuated]
    assert (spread > 0.75 * full).all()


def test_g_annihilates_the_constraints(
    leg: LoopClosure, states: tuple[FloatArray, FloatArray]
) -> None:
    for q in states[0]:
        G, _ = leg.map(q)
        assert np.abs(G.T @ leg.equations.jacobian(q).T).max() < 1e-10
        np.testing.assert_array_equal(G[leg.equations.actuated], np.eye(6))


def test_g_and_its_rate_are_derivatives(
    leg: LoopClosure, states: tuple[FloatArray, FloatArray]
) -> None:
    """Against central differences, whose own error is of order h² at h = 1e-5."""
    h, active = 1e-5, leg.equations.actuated
    for i in range(20):
        q, v = states[0][i], states[1][i]

        def configuration(q_a: FloatArray, start: FloatArray = q) -> FloatArray:
            return leg.solve(q_a, start).configuration

        maps = leg.maps(q, v)
        for k, step in enumerate(h * np.eye(6)):
            forth, back = configuration(q[active] + step), configuration(q[active] - step)
            np.testing.assert_allclose((forth - back) / (2 * h), maps.G[:, k], atol=1e-6)
        forth, back = configuration(q[active] + h * v), configuration(q[active] - h * v)
        rate = (leg.map(forth)[0] - leg.map(back)[0]) / (2 * h)
        np.testing.assert_allclose(rate, maps.G_dot, atol=1e-6 * max(1.0, np.abs(rate).max()))


def test_accelerations_keep_the_loops_closed(
    leg: LoopClosure, states: tuple[FloatArray, FloatArray]
) -> None:
    q, v = states
    a = np.random.default_rng(5).normal(size=v.shape)
    motion = leg.motion(q[:, leg.equations.actuated], v, a, q)
    assert motion.valid.all()
    for i in range(len(q)):
        J = leg.equations.jacobian(motion.q[i])
        J_dot = leg.equations.jacobian_dot(motion.q[i], motion.v[i])
        # rounding grows with the terms that cancel
        size = 1.0 + np.abs(J_dot @ motion.v[i]).max()
        assert np.abs(J @ motion.v[i]).max() < 1e-12 * (1.0 + np.abs(motion.v[i]).max())
        assert np.abs(J @ motion.a[i] + J_dot @ motion.v[i]).max() < 1e-11 * size


def test_a_closure_from_the_last_millisecond_takes_three_steps(leg: LoopClosure) -> None:
    """Which bounds what a tick costs; `bench.speed` gives its time."""
    t = np.arange(0.0, 0.2, 1e-3)[:, None]
    q_a = 0.3 * np.sin(2 * np.pi * t + np.arange(6)) * np.array([1, 1, 1, 1, 0.5, 0.0])
    q_a[:, 5] = -q_a[:, 4]
    q = leg.solve(q_a[0]).configuration
    for each in q_a:
        found = leg.solve(each, q)
        assert found.converged
        assert found.iterations <= 3
        q = found.configuration


def test_actuated_joints_determine_the_leg(leg: LoopClosure) -> None:
    report = check_loops(leg, count=100)
    assert (report.reachable, report.unique) == (100, 100)
    assert report.holds
    assert report.residual < 1e-10
    assert report.equations == report.passive == 9
    assert "a unique solution exists" in report.lines()[1]


def test_a_start_far_from_the_closure_finds_the_robots_own_assembly(leg: LoopClosure) -> None:
    rng = np.random.default_rng(6)
    for q in random_closed_configurations(leg, 10, seed=7):
        start = q.copy()
        start[leg.equations.passive] += rng.uniform(-2.0, 2.0, 9)
        found = leg.solve(q[leg.equations.actuated], start)
        assert found.converged
        np.testing.assert_allclose(found.configuration, q, atol=1e-8)


def test_the_assembly_is_kept_beyond_the_limits_at_the_cost_of_a_step(leg: LoopClosure) -> None:
    """Where a passive joint is beyond its limits, the next solve still starts nearby."""
    allowed = leg.excess(leg.home).max()
    for q in random_closed_configurations(leg, 60, seed=9):
        active = q[leg.equations.actuated]
        away = leg.home[leg.equations.actuated] - active
        far = leg.solve(active - 0.5 * away)
        if far.converged and leg.excess(far.configuration).max() > 0.3 + allowed:
            break
    else:
        pytest.skip("no such configuration was found")
    step = leg.solve(active - 0.5 * away + 1e-4, far.configuration)
    assert step.converged
    assert step.iterations <= 3
    np.testing.assert_allclose(step.configuration, far.configuration, atol=0.01)
    np.testing.assert_allclose(
        step.jacobian, leg.equations.jacobian(step.configuration), atol=1e-12
    )


def test_what_cannot_be_reached_is_no_solution(leg: LoopClosure) -> None:
    far = leg.home[leg.equations.actuated].copy()
    far[4:] = 0.75  # both toe motors up: the rods are too short for that on either leg
    found = leg.solve(far)
    assert not found.converged
    assert found.residual > 1e-4
    motion = leg.motion(np.stack([0.0 * far, far, 0.1 * far]), np.zeros((3, 6)), np.zeros((3, 6)))
    np.testing.assert_array_equal(motion.valid, [True, False, True])
    assert np.isnan(motion.q[1]).all()


@pytest.mark.parametrize("far", [1e4, 1e7, 1e9, 1e300])
def test_however_far_a_position_is_a_solution_costs_a_bounded_number_of_steps(
    leg: LoopClosure, far: float
) -> None:
    solves = 0

    def counted(*arguments: Any) -> ClosedConfiguration:
        nonlocal solves
        solves += 1
        return newton(*arguments)

    newton = leg.newton
    active = leg.robot.actuated
    for joint_index in range(int(active.sum())):
        q_a = leg.home[active].copy()
        q_a[joint_index] = far
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(leg, "newton", counted)
            leg.solve(q_a)
    assert solves <= 2 * active.sum()


def test_a_four_bar_follows_its_closed_form(four_bar: FourBar) -> None:
    closure = LoopClosure(four_bar())
    assert closure.redundant == {"pin": 1}  # out of the plane
    branch = int(
        np.argmin([np.abs(np.sin(0.5 * (closure.home[2] - x))) for x in rocker_angles(0.0)])
    )
    crank = np.linspace(0.0, 2.0 * np.pi, 200)
    velocity = np.ones((200, 1))
    motion = closure.motion(crank[:, None], velocity, 0.0 * velocity)
    assert motion.valid.all()
    expected = np.array([rocker_angles(q)[branch] for q in crank])
    np.testing.assert_allclose(np.sin(0.5 * (motion.q[:, 2] - expected)), 0.0, atol=1e-10)
    h = 1e-5
    rate = [(rocker_angles(q + h)[branch] - rocker_angles(q - h)[branch]) / (2 * h) for q in crank]
    np.testing.assert_allclose(motion.v[:, 2], rate, atol=1e-8)


def test_a_fixed_loop_closes_rotation_too(four_bar: FourBar, tmp_path: Path) -> None:
    """The same linkage as an open chain of four joints whose last link is welded to the ground."""
    urdf = "".join(
        [
            '<robot name="chain"><link name="ground"/>',
            link("crank", CRANK),
            link("coupler", COUPLER),
            link("rocker", ROCKER),
            link("base", 0.1),
            joint("q1", "ground", "crank", 0.0),
            joint("q2", "crank", "coupler", CRANK),
            joint("q3", "coupler", "rocker", COUPLER),
            joint("q4", "rocker", "base", ROCKER),
            "</robot>",
        ]
    )
    (tmp_path / "chain.urdf").write_text(urdf)
    weld = loop("weld", "base", 0.0, "ground", GROUND, "fixed")
    description = {
        "name": "chain",
        "urdf": "chain.urdf",
        "joints": {"passive": ["q2", "q3", "q4"]},
        "loops": [weld],
    }
    chain = LoopClosure(load_robot(parse_description(description, source=tmp_path / "c.yaml")))
    assert chain.redundant == {"weld": 3}
    for crank in np.linspace(-1.0, 1.0, 9):
        found = chain.solve(np.array([crank]))
        assert found.converged
        q = found.configuration
        # the weld's rotation makes all angles add up to a whole turn
        assert abs(np.sin(0.5 * q.sum())) < 1e-10
        rocker = q[0] + q[1] + q[2] + np.pi
        assert min(abs(np.sin(0.5 * (rocker - x))) for x in rocker_angles(crank)) < 1e-10
        v = chain.map(q)[0][:, 0]
        assert abs(v.sum()) < 1e-10


def test_near_singular_configurations_are_not_valid(four_bar: FourBar) -> None:
    """Driven by its rocker, the linkage stalls where crank and coupler lie in one line."""
    closure = LoopClosure(four_bar(joints={"passive": ["q_crank", "q_coupler"]}))
    reach = CRANK + COUPLER
    inner = np.arccos((GROUND**2 + ROCKER**2 - reach**2) / (2.0 * GROUND * ROCKER))
    dead = inner - np.pi
    distance = np.array([0.3, 1e-2, 1e-6, -1e-2])[:, None]
    home = closure.home[closure.equations.actuated]
    assert home < dead  # the range that the linkage can reach lies on this side
    motion = closure.motion(dead - distance, np.ones((4, 1)), np.ones((4, 1)))
    np.testing.assert_array_equal(motion.valid, [True, True, False, False])
    assert motion.residual[2] < 1e-10
    assert motion.condition[2] > 1000.0
    assert motion.residual[3] > 1e-4


def test_online_the_estimate_is_held_near_singular_configurations(four_bar: FourBar) -> None:
    """A rocker at its dead point tells nothing of the crank; the rest of its swing does."""
    robot = four_bar(joints={"passive": ["q_crank", "q_coupler"]})
    reach = CRANK + COUPLER
    dead = np.arccos((GROUND**2 + ROCKER**2 - reach**2) / (2.0 * GROUND * ROCKER)) - np.pi
    time = np.arange(1100) / 100.0
    regular = time < 9.0  # one joint tells little of its torque's scale: a first model waits
    depth = np.where(regular, 0.5, 2e-6)  # [rad] from the dead point
    swing = 0.3 * depth * np.sin(9.0 * time)
    arrays = np.full((4, len(time), 3), np.nan)
    rocker = robot.joint_names.index("q_rocker")
    arrays[0, :, rocker] = dead - depth + swing
    arrays[1, :, rocker] = np.where(regular, 2.7 * depth * np.cos(9.0 * time), 0.5)
    arrays[2, :, rocker] = -81.0 * swing
    model, truth = ClosedChainDynamics(robot), robot.consistent_nominal.copy()
    robot.layout.inertias(truth)[:] *= 1.3
    model.set_parameters(truth)
    for i in np.flatnonzero(regular):
        arrays[3, i, rocker] = model.torque(*arrays[:3, i, [rocker]])[0]
    arrays[3, ~regular, rocker] = 1.0
    samples, identifier = Samples(time, *arrays), OnlineIdentifier(robot)
    updates = []
    for start in range(0, len(time), 10):
        identifier.ingest(samples.select(slice(start, start + 10)))
        updates.append(identifier.update())
    before = updates[89]
    assert before.state is GateState.IDENTIFIED, before.reasons
    assert updates[-1].state is GateState.HOLDING
    assert any("near a singular configuration" in text for text in updates[-1].warnings)
    np.testing.assert_array_equal(updates[-1].parameters, before.parameters)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"coupler": 3.0}, ["loop 'pin' cannot close", "frame_a"]),
        ({"loops": []}, ["belong to no loop", "q_coupler"]),
        (
            {"loops": [loop("pin", "coupler", COUPLER, "coupler", 0.0)]},
            ["no loop goes through", "q_rocker"],
        ),
        (
            {
                "loops": [
                    loop("pin", "coupler", COUPLER, "rocker", ROCKER),
                    loop("again", "rocker", ROCKER, "coupler", COUPLER),
                ]
            },
            ["'again' is redundant", "remove it"],
        ),
        (
            {"joints": {"passive": ["q_crank", "q_coupler", "q_rocker"]}},
            ["both passive and actuated"],
        ),
        (
            {"loops": [loop("pin", "coupler", COUPLER, "nowhere", ROCKER)]},
            ["'nowhere' is not in the URDF"],
        ),
        (
            {"limits": {"position": {"q_rocker": [0.0, 0.1]}}},
            ["'q_rocker' beyond its limits"],
        ),
    ],
)
def test_bad_loops_are_named(four_bar: FourBar, changes: dict[str, Any], words: list[str]) -> None:
    with pytest.raises(RobotError) as caught:
        LoopClosure(four_bar(**changes))
    for word in words:
        assert word in str(caught.value)


def test_free_and_overdetermined_linkages_are_named(four_bar: FourBar, tmp_path: Path) -> None:
    welded = loop("weld", "coupler", COUPLER, "rocker", ROCKER, "fixed")
    with pytest.raises(RobotError, match=r"cannot close|fix actuated joints"):
        LoopClosure(four_bar(loops=[welded]))
    text = (tmp_path / "four_bar.urdf").read_text().replace("</robot>", "")
    text += link("tail", 0.2) + joint("q_tail", "coupler", "tail", COUPLER) + "</robot>"
    (tmp_path / "tail.urdf").write_text(text)
    description = {
        "name": "tail",
        "urdf": "tail.urdf",
        "joints": {"passive": ["q_coupler", "q_rocker", "q_tail"]},
        "loops": [loop("pin", "tail", 0.0, "rocker", ROCKER)],
    }
    with pytest.raises(RobotError, match=r"leave passive joints \['q_tail'\] free"):
        LoopClosure(load_robot(parse_description(description, source=tmp_path / "tail.yaml")))


def test_wrong_shapes_are_refused(leg: LoopClosure) -> None:
    with pytest.raises(ModelError, match="6 actuated joints"):
        leg.solve(np.zeros(5))
    with pytest.raises(ModelError, match="6 actuated joints"):
        leg.motion(np.zeros((3, 9)), np.zeros((3, 9)), np.zeros((3, 9)))
