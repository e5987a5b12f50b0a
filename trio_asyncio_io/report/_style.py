"""The style sheet of a report, for light and dark, wide and narrow."""

from __future__ import annotations

__all__ = ["STYLE"]

# Blue and vermilion are those of Okabe and Ito, which people with any color vision can distinguish
STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1f2328;--soft:#59636e;--line:#d0d7de;--card:#f6f8fa;--bar:#0072b2;
--mark:#b3470a;--hover:#0001}
@media (prefers-color-scheme:dark){:root{--bg:#0d1117;--fg:#e6edf3;--soft:#9198a1;--line:#30363d;--card:#161b22;
--bar:#56b4e9;--mark:#ff8a4c;--hover:#fff2}}
body{margin:0 auto;max-width:60rem;padding:1.5rem 1rem 2rem;background:var(--bg);color:var(--fg);
font:16px/1.5 system-ui,sans-serif;overflow-wrap:anywhere}
h1{margin:0;font-size:1.7rem;line-height:1.25}
h2{margin:2.2rem 0 .6rem;font-size:1.15rem}
h3{margin:1rem 0 .2rem;font-size:1rem}
p{margin:.3rem 0}
.soft,footer{color:var(--soft)}
.failed{color:var(--mark);font-weight:600}
footer{margin-top:2.5rem;padding-top:.6rem;border-top:1px solid var(--line);font-size:.85rem}
.cards{display:grid;grid-template-columns:repeat(4,1fr);gap:.6rem;margin:1.2rem 0}
.card{padding:.6rem .8rem;background:var(--card);border:1px solid var(--line);border-radius:.5rem}
.card b{display:block;font-size:1.35rem}
.verdict{padding:.8rem 1rem;background:var(--card);border-left:4px solid var(--bar);border-radius:.3rem}
figure{margin:0 0 1rem}
figcaption{color:var(--soft)}
.plot{display:block;width:calc(100% - 4rem);margin-left:3.5rem;overflow:visible}
.plot text{font:12px system-ui,sans-serif;fill:var(--soft)}
.plot .grid{stroke:var(--line)}
.plot .bar{fill:var(--bar);shape-rendering:crispEdges}
.plot .column{fill:transparent}
.plot g:hover .column{fill:var(--hover)}
.failures .bar{fill:var(--mark)}
.plot .mark{stroke:var(--mark);stroke-width:1.5;stroke-dasharray:5 4}
.plot .mark-name{fill:var(--mark);stroke:var(--bg);stroke-width:4;stroke-linejoin:round;paint-order:stroke}
ul{margin:.2rem 0;padding-left:1.2rem}
li{margin:.2rem 0}
code{font:.85rem/1.5 ui-monospace,monospace}
table{border-collapse:collapse;width:100%}
th,td{padding:.3rem .6rem;border-bottom:1px solid var(--line);text-align:left;vertical-align:top}
th{font-weight:600}
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
@media (max-width:40rem){.minor{display:none}table{font-size:.85rem}
.cards{grid-template-columns:1fr 1fr}th,td{padding:.3rem .35rem}}
"""
