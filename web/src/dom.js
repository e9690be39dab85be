// SPDX-License-Identifier: BSD-3-Clause
// dom: elements. Every string becomes text, never markup.

/** Make an element: h("a", {href: "#/", onclick: f}, "text", child, [children]). null and false are left out. */
export function h(tag, attributes, ...children) {
  const element = document.createElement(tag);

  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, v] of Object.entries(value)) element.style.setProperty(key, v);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : String(child));
  }
}

/** Replace the children of an element. */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

let pressed = null; // where the pointer went down: its element must stay until it is up again, or the click is lost
addEventListener("pointerdown", (e) => { pressed = e.target; }, true);
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => setTimeout(() => { pressed = null; }), true);

/** The same for what changes by itself, again and again: not while it is being clicked, and the focus stays on what has the same data-key. */
export function refill(element, ...children) {
  if (pressed && element.contains(pressed)) return;
  const key = element.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;

  fill(element, children);
  if (key !== undefined)
    [...element.querySelectorAll("[data-key]")].find((e) => e.dataset.key === key)?.focus({ preventScroll: true });
}

/** Set the text of an element only if it differs, which costs no layout otherwise. */
export function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

let toasts;

/** Show a message for a while; action: {label, run}. An error stays until it is closed. */
export function toast(text, { error = false, action = null } = {}) {
  if (!toasts) {
    toasts = h("div", { class: "toasts", role: "status", "aria-live": "polite" });
    document.body.append(toasts);
  }
  const box = h("div", { class: error ? "toast error" : "toast", role: error ? "alert" : null }, h("span", null, text));
  const close = () => box.remove();

  if (action) box.append(h("button", { onclick: () => { close(); action.run(); } }, action.label));
  box.append(h("button", { class: "plain", onclick: close, "aria-label": "close" }, "×"));
  toasts.append(box);
  while (toasts.children.length > 4) toasts.firstChild.remove();
  if (!error) setTimeout(close, action ? 30000 : 6000);
}

/** Ask for a confirmation by typing a word. Resolves to true or false. */
export function confirmByWord(title, text, word) {
  return new Promise((resolve) => {
    const input = h("input", { autocomplete: "off", spellcheck: "false", "aria-label": `type ${word}` });
    const go = h("button", { class: "danger", disabled: true }, title);
    const dialog = h("dialog", { "aria-label": title },
      h("form", { method: "dialog", onsubmit: (e) => { e.preventDefault(); if (!go.disabled) end(true); } },
        h("h2", null, title), h("p", null, text), h("p", null, "Type ", h("b", null, word), " to go on:"), input,
        h("div", { class: "row end" }, h("button", { type: "button", onclick: () => end(false) }, "Cancel"), go)));
    const end = (answer) => { dialog.close(); dialog.remove(); resolve(answer); };

    input.addEventListener("input", () => { go.disabled = input.value !== word; });
    dialog.addEventListener("cancel", (e) => { e.preventDefault(); end(false); });
    document.body.append(dialog);
    dialog.showModal();
    input.focus();
  });
}
