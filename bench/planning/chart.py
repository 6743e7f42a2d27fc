"""A line chart as an SVG of its own."""
import math
from xml.sax.saxutils import escape

COLOURS = ["#1b6ca8", "#c0504d", "#4f8f4f", "#8064a2"]
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 360, 60, 20, 34, 46


def ticks(low, high, log):
    if log:
        return [10.0 ** e for e in range(math.floor(low), math.ceil(high) + 1) if low - 1e-9 <= e <= high + 1e-9]
    if high <= low:
        return [low]
    step = 10.0 ** math.floor(math.log10((high - low) / 4))
    step *= next(s for s in (1, 2, 5, 10) if (high - low) / (step * s) <= 7)
    return [step * i for i in range(math.ceil(low / step), math.floor(high / step) + 1)]


def draw(path, title, x_name, y_name, series, log=False):
    """series: {name: [(x, y)]}; log: both axes."""
    scale = (lambda v: math.log10(max(v, 1e-3))) if log else float
    points = [(scale(x), scale(y)) for line in series.values() for x, y in line]
    x0, x1 = min(p[0] for p in points), max(p[0] for p in points)
    y0, y1 = min(p[1] for p in points + [(0, 0)] * (not log)), max(p[1] for p in points)
    across = lambda x: LEFT + (scale(x) - x0) / max(x1 - x0, 1e-9) * (WIDTH - LEFT - RIGHT)
    up = lambda y: HEIGHT - BOTTOM - (scale(y) - y0) / max(y1 - y0, 1e-9) * (HEIGHT - TOP - BOTTOM)
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">' % (WIDTH, HEIGHT),
           '<rect width="100%" height="100%" fill="white"/>',
           '<text x="%d" y="18" font-weight="bold">%s</text>' % (LEFT, escape(title))]
    for value in ticks(x0, x1, log):
        out.append('<path d="M%.1f %d V%d" stroke="#ddd"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>'
                   % (across(value), TOP, HEIGHT - BOTTOM, across(value), HEIGHT - BOTTOM + 16, "{:,.10g}".format(value)))
    for value in ticks(y0, y1, log):
        out.append('<path d="M%d %.1f H%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>'
                   % (LEFT, up(value), WIDTH - RIGHT, LEFT - 6, up(value) + 4, "{:,.10g}".format(value)))
    out.append('<text x="%d" y="%d" text-anchor="middle">%s</text>' % ((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, escape(x_name)))
    out.append('<text transform="translate(14 %d) rotate(-90)" text-anchor="middle">%s</text>' % ((TOP + HEIGHT - BOTTOM) / 2, escape(y_name)))
    for i, (name, line) in enumerate(series.items()):
        colour = COLOURS[i % len(COLOURS)]
        out.append('<polyline fill="none" stroke="%s" stroke-width="1.5" points="%s"/>'
                   % (colour, " ".join("%.1f,%.1f" % (across(x), up(y)) for x, y in line)))
        out.append('<text x="%d" y="%d" text-anchor="end" fill="%s">%s</text>'
                   % (WIDTH - RIGHT - 8, (TOP + 18 if not log else HEIGHT - BOTTOM - 16 * len(series) + 4) + 16 * i, colour, escape(name)))
    with open(path, "w") as file:
        file.write("\n".join(out + ["</svg>\n"]))
