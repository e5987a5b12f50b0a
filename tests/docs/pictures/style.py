"""The style sheet of the pictures: that of the timelines, with more classes, and with text of a fixed size."""

from trio_asyncio_io._watch.svg import STYLE as TIMELINE

__all__ = ["STYLE"]

STYLE = (
    TIMELINE
    + """
.timeline .box{fill:none;stroke:var(--soft);stroke-width:1.5}
.timeline .done{fill:var(--emitted);fill-opacity:.28;stroke:var(--emitted);stroke-width:1.5}
.timeline .running{fill:var(--run);fill-opacity:.22;stroke:var(--run);stroke-width:1.5}
.timeline .wall-box{fill:var(--wall);fill-opacity:.2;stroke:var(--wall);stroke-width:1.5}
.timeline .lock{fill:var(--bad);fill-opacity:.12;stroke:var(--bad);stroke-width:1.5}
.timeline .group{fill:none;stroke:var(--soft);stroke-dasharray:3 3}
.timeline .idle{fill:var(--grid);fill-opacity:.6}
.timeline .pause{fill:var(--order);fill-opacity:.16}
.timeline .repeated{fill:var(--bad);fill-opacity:.3;stroke:var(--bad);stroke-dasharray:4 3}
.timeline polyline{fill:none;stroke-width:2.5}
.timeline .curve-run{stroke:var(--run)}
.timeline .curve-order{stroke:var(--order)}
.timeline .curve-emitted{stroke:var(--emitted)}
.timeline .limit{stroke:var(--bad);stroke-width:1.5;stroke-dasharray:2 3}
.timeline .arrow{stroke:var(--soft);stroke-width:1.5;fill:none}
.timeline .tip{fill:var(--soft)}
@media (max-width:520px){.timeline text,.timeline .soft,.timeline .wall-name{font-size:13px}
.timeline .title{font-size:16px}.timeline .name{font-size:14px}}
"""
)
