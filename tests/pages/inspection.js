// Returns what a reader could not see or hear, as a list of sentences. Runs inside the page.
(() => {
  const findings = [];
  const wide = document.documentElement.clientWidth;
  const name = (node) => `<${node.tagName.toLowerCase()}> ${(node.textContent || "").trim().slice(0, 40)}`;

  const channels = (text) => {
    const numbers = text.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
    return numbers.length > 3 ? numbers : [...numbers, 1];
  };
  const over = (top, bottom) => top.slice(0, 3).map((c, i) => c * top[3] + bottom[i] * (1 - top[3]));
  const luminance = (color) => color
    .map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const background = (node) => {
    const layers = [];
    for (let each = node; each; each = each.parentElement) {
      layers.push(channels(getComputedStyle(each).backgroundColor));
    }
    return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255]);
  };
  const contrast = (node) => {
    const style = getComputedStyle(node);
    const below = background(node);
    const ink = node instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [luminance(over(channels(ink), below)), luminance(below)];
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  };
  const hidden = (node) => node.closest("[aria-hidden=true]") || !node.checkVisibility({ visibilityProperty: true, opacityProperty: true });
  const scrolls = (node) => {
    for (let each = node; each && each !== document.body; each = each.parentElement) {
      const flow = getComputedStyle(each).overflowX;
      if ((flow === "auto" || flow === "scroll") && each.scrollWidth > each.clientWidth) return true;
    }
    return false;
  };

  if (!document.documentElement.lang) findings.push("the page names no language");
  if (!document.title) findings.push("the page has no title");
  if (!document.querySelector("main, [role=main]")) findings.push("the page has no main part");
  if (document.documentElement.scrollWidth > wide + 1) findings.push("the page scrolls sideways");

  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = walker.nextNode(); text; text = walker.nextNode()) {
    const node = text.parentElement;
    if (!text.data.trim() || ["SCRIPT", "STYLE", "NOSCRIPT", "TEMPLATE"].includes(node.tagName) || hidden(node)) continue;
    const range = document.createRange();
    range.selectNodeContents(text);
    const boxes = [...range.getClientRects()].filter((box) => box.width > 1 && box.height > 1);
    if (!boxes.length) continue;
    if (!scrolls(node) && boxes.some((box) => box.left < -1 || box.right > wide + 1)) {
      const drawer = node.closest("[data-md-component=sidebar], .md-search");
      if (!drawer) findings.push(`text leaves the screen: ${name(node)}`);
    }
    const size = parseFloat(getComputedStyle(node).fontSize);
    const bold = Number(getComputedStyle(node).fontWeight) >= 700;
    const needed = size >= 24 || (bold && size >= 18.66) ? 3 : 4.5;
    const seen = contrast(node);
    if (seen < needed) findings.push(`contrast ${seen.toFixed(2)} is below ${needed}: ${name(node)}`);
  }

  for (const picture of document.querySelectorAll("img")) {
    if (!picture.hasAttribute("alt")) findings.push(`a picture has no alternative text: ${picture.src}`);
  }
  for (const drawing of document.querySelectorAll("svg[role=img]")) {
    if (!drawing.getAttribute("aria-label")) findings.push("a drawing has no description");
  }
  for (const control of document.querySelectorAll("a[href], button")) {
    if (!hidden(control) && !(control.textContent.trim() || control.ariaLabel || control.title)) findings.push("a link or button has no name");
  }
  for (const table of document.querySelectorAll("table")) {
    if (!table.querySelector("th") && !table.closest(".highlight, .highlighttable")) findings.push("a table has no header");
  }
  let last = 0;
  for (const heading of document.querySelectorAll("main h1, main h2, main h3, main h4, article h1, article h2, article h3, article h4")) {
    const level = Number(heading.tagName[1]);
    if (level > last + 1) findings.push(`a heading skips a level: ${name(heading)}`);
    last = level;
  }
  return [...new Set(findings)];
})()
