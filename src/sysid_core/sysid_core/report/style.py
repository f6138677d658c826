# SPDX-License-Identifier: Apache-2.0
"""Colours and the style sheet that page and figures share."""

from __future__ import annotations

__all__ = [
    "HELD_OUT",
    "IDENTIFIED",
    "INK",
    "MEASURED",
    "MUTED",
    "NOMINAL",
    "STYLE_SHEET",
]


MEASURED = "#333a45"
NOMINAL = "#e08214"
IDENTIFIED = "#1f6fd1"
HELD_OUT = "#eef3fa"
INK = "#1d2430"
MUTED = "#667085"

STYLE_SHEET = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0; background: #f6f7f9; color: #1d2430;
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 1120px; margin: 0 auto; padding: 28px 20px 60px; }
h1 { font-size: 26px; margin: 0 0 2px; }
h2 { font-size: 18px; margin: 34px 0 8px; }
p { margin: 6px 0; max-width: 80ch; }
.muted { color: #667085; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(170px, 1fr)); gap: 12px;
  margin: 18px 0 6px; }
.card { background: #fff; border: 1px solid #e4e7ec; border-radius: 10px; padding: 12px 14px; }
.card b { display: block; font-size: 22px; line-height: 1.25; }
.card span { color: #667085; font-size: 13px; }
.good b { color: #12805c; } .bad b { color: #c0362c; }
.panel { background: #fff; border: 1px solid #e4e7ec; border-radius: 10px; padding: 14px;
  overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: right; padding: 5px 10px; border-bottom: 1px solid #edf0f3;
  white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
td.wrap { white-space: normal; text-align: left; }
th { color: #667085; font-weight: 600; font-size: 13px; white-space: normal;
  vertical-align: bottom; }
@media (max-width: 640px) { main { padding: 20px 10px 40px; } .panel { padding: 10px 6px; }
  table { font-size: 13px; } th { font-size: 11px; } th, td { padding: 5px; } }
td.better { color: #12805c; font-weight: 600; } td.worse { color: #c0362c; font-weight: 600; }
ul { margin: 6px 0; padding-left: 20px; } li { margin: 4px 0; max-width: 95ch; }
details { background: #fff; border: 1px solid #e4e7ec; border-radius: 10px; margin-top: 10px; }
summary { cursor: pointer; padding: 10px 14px; font-weight: 600; }
details > div { padding: 0 14px 12px; overflow-x: auto; }
.warning li { color: #8a4b08; }
code { background: #eef0f4; border-radius: 4px; padding: 1px 5px; font-size: 13px; }
"""
