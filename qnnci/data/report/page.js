"use strict";
// The page is whole without this: it only sorts and filters the rows of the results, and folds logs.
(() => {
  const table = document.querySelector(".sortable");
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const figure = (text) => {
    const found = text === "not finite" ? -Infinity : parseFloat(text);
    return Number.isNaN(found) ? null : found;
  };

  // What has no figure stands at the end in both directions.
  const compare = (one, other, number, sign) => {
    const [a, b] = number ? [figure(one), figure(other)] : [one || null, other || null];
    if (a === null || b === null) return (a === null) - (b === null);
    if (number) return a === b ? 0 : a < b ? -sign : sign;
    return sign * a.localeCompare(b, "en", { numeric: true });
  };

  const sort = (header) => {
    const ascending = header.getAttribute("aria-sort") !== "ascending";
    const column = header.cellIndex;
    const number = header.dataset.kind === "number";
    const value = (row) => row.cells[column].dataset.v;
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => compare(value(a), value(b), number, ascending ? 1 : -1));
    table.tBodies[0].append(...rows);
    for (const each of all("thead th[aria-sort]", table)) each.setAttribute("aria-sort", "none");
    header.setAttribute("aria-sort", ascending ? "ascending" : "descending");
  };

  const filter = () => {
    const words = document.getElementById("words").value.toLowerCase().split(/\s+/).filter(Boolean);
    const verdict = document.getElementById("verdict").value;
    const rows = [...table.tBodies[0].rows];
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = Boolean(verdict && row.dataset.verdict !== verdict) || !words.every((word) => text.includes(word));
    }
    const shown = rows.filter((row) => !row.hidden).length;
    document.getElementById("shown").textContent = `${shown} of ${rows.length} targets`;
  };

  if (table) {
    for (const header of all("thead th[data-kind]", table)) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      button.addEventListener("click", () => sort(header));
      header.append(button);
      header.setAttribute("aria-sort", "none");
    }
    const form = document.querySelector(".filter");
    form.hidden = false;
    form.addEventListener("input", filter);
    form.addEventListener("submit", (event) => event.preventDefault());
    filter();
  }

  const logs = all("#findings details");
  if (logs.length) {
    document.querySelector(".fold").hidden = false;
    const fold = (open) => () => logs.forEach((each) => { each.open = open; });
    document.getElementById("open").addEventListener("click", fold(true));
    document.getElementById("close").addEventListener("click", fold(false));
  }
})();
