"""JavaScript expressions that find what a reader could not see: cut off, overlapping or pale."""

# Elements that the page cuts off or that make it wider than the window. A wide table scrolls in a box of its own
OUTSIDE = """
[document.documentElement, ...document.querySelectorAll("body *")]
  .filter(each => !["TITLE", "title"].includes(each.tagName))
  .filter(each => !each.parentElement?.closest(".wide"))
  .filter(each => {
    const box = each.getBoundingClientRect();
    return box.left < -0.5 || box.right > innerWidth + 0.5;
  }).map(each => each.outerHTML.slice(0, 200))
  .concat(document.documentElement.scrollWidth > innerWidth ? ["the page is wider than the window"] : [])
"""

# Names of an axis that lie on top of each other
OVERLAPPING = """
[...document.querySelectorAll("svg.plot")].flatMap(plot => {
  const boxes = [...plot.querySelectorAll("text:not(.mark-name)")]
    .map(each => [each.textContent, each.getBoundingClientRect()]).filter(each => each[1].width > 0);
  return boxes.flatMap(([name, a], number) => boxes.slice(number + 1)
    .filter(([_, b]) => a.left < b.right && b.left < a.right && a.top + 2 < b.bottom && b.top + 2 < a.bottom)
    .map(([other, _]) => `${name} and ${other}`));
})
"""

# The contrast of each text with its background, as WCAG defines it
CONTRASTS = """
(() => {
  const light = color => {
    const [r, g, b] = color.match(/[\\d.]+/g).slice(0, 3)
      .map(each => each / 255).map(each => each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = each => {
    const color = getComputedStyle(each).backgroundColor;
    return color === "rgba(0, 0, 0, 0)" && each.parentElement ? background(each.parentElement) : color;
  };
  return [...document.querySelectorAll("body *")]
    .filter(each => [...each.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
    .filter(each => each.tagName !== "title")
    .map(each => {
      const color = getComputedStyle(each)[each.tagName === "text" ? "fill" : "color"];
      const [low, high] = [light(color), light(background(each))].sort((a, b) => a - b);
      return (high + 0.05) / (low + 0.05);
    });
})()
"""
