"""The style sheet of the timelines; and that of the other pictures, with more classes and with text of a fixed size."""

from trio_asyncio_io._watch.charts import style_sheet

# On a narrow screen the drawing shrinks, so its text grows
TIMELINE = "\n.timeline{max-width:100%;height:auto}" + style_sheet(
    ".timeline",
    """\
.timeline text{font:13px system-ui,sans-serif;fill:var(--fg)}
.timeline .title{font-size:16px;font-weight:650}
.timeline .name{font-size:14px;font-weight:600}
.timeline .label{font-family:ui-monospace,monospace}
.timeline .soft{fill:var(--soft);font-size:12px}
.timeline .wall-name{fill:var(--wall);font-size:12px}
.timeline line{stroke:var(--grid)}
.timeline .slot,.timeline .consumer{stroke:var(--soft);stroke-width:2;stroke-dasharray:2 4}
.timeline .run{fill:var(--run)}
.timeline .failed{fill:var(--bad)}
.timeline .late{fill:var(--bad);fill-opacity:.55}
.timeline .cancelled{fill:none;stroke:var(--bad);stroke-width:1.5}
.timeline .key{stroke:var(--handler);stroke-width:2;stroke-dasharray:6 3}
.timeline .gate{stroke:var(--backoff);stroke-width:2;stroke-dasharray:6 3}
.timeline .backoff{fill:var(--backoff)}
.timeline .handler{fill:var(--handler)}
.timeline .order{fill:var(--order);fill-opacity:.5}
.timeline .emitted{fill:var(--emitted)}
.timeline .wall{stroke:var(--wall);stroke-width:2;stroke-dasharray:6 4}
.timeline .cross{stroke:var(--bad);stroke-width:2;fill:none}
@media (max-width:520px){.timeline text,.timeline .soft,.timeline .wall-name{font-size:17px}
.timeline .title,.timeline .name{font-size:20px}}
""",
)

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
