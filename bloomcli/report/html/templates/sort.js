"use strict";
// Each column title of a sortable table becomes a button that sorts the rows; pressed again, it reverses the order.
for (const table of document.querySelectorAll("table[data-sortable]")) {
  const heads = [...table.tHead.rows[0].cells];
  const body = table.tBodies[0];
  const first = [...body.rows];
  const said = document.getElementById("said");
  const order = new Intl.Collator("en", { numeric: true });
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.textContent = "";
    head.append(button);
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const figures = head.classList.contains("n");
      const before = head.getAttribute("aria-sort");
      const starts = figures ? "descending" : "ascending";
      const turns = figures ? "ascending" : "descending";
      const now = before === starts ? turns : starts;
      const sign = now === "ascending" ? 1 : -1;
      const keys = new Map(first.map((row) => {
        const cell = row.cells[column];
        return [row, "v" in cell.dataset ? Number(cell.dataset.v) : cell.textContent];
      }));
      const compare = (a, b) => {
        const x = keys.get(a), y = keys.get(b);
        if (typeof x === "number" && typeof y === "number") return x === y ? 0 : x < y ? -sign : sign;
        return sign * order.compare(String(x), String(y));
      };
      body.append(...[...first].sort(compare));
      for (const other of heads) other.setAttribute("aria-sort", other === head ? now : "none");
      said.textContent = `${table.caption.textContent}: sorted by ${button.textContent}, ${now}`;
    });
  });
}
