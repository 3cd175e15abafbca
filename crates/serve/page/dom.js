// Elements of the page. Text from the server enters as text, never as markup.

// An element with attributes, handlers (`onclick`) and children; children that are null are left out.
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter(child => child !== null && child !== undefined));
  return element;
}

// A value with four digits.
export function text(value) {
  if (!Number.isFinite(value)) return "not a number";
  return String(Number(value.toPrecision(4))).replace("-", "\u2212");
}

// ` Pa` behind a value; nothing for a field without dimension.
export const unitText = unit => (unit && unit !== "1" ? ` ${unit}` : "");

// Numbers with spaces between thousands.
export const whole = number => String(number).replace(/\B(?=(\d{3})+$)/g, "\u202f");

// A button.
export const button = (label, onclick, attributes = {}) => make("button", { type: "button", onclick, ...attributes }, label);

// Gives the user a file.
export function save(bytes, name) {
  const address = URL.createObjectURL(new Blob([bytes]));
  make("a", { href: address, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

// Calls a function with the latest of several values: while one call runs, newer values replace each other.
export function latest(run) {
  let busy = false, next = null;
  return async function request(value) {
    next = { value };
    if (busy) return;
    busy = true;
    try {
      while (next) {
        const { value: now } = next;
        next = null;
        await run(now);
      }
    } finally {
      busy = false;
    }
  };
}

// Calls a function once the calls of this one have paused.
export function settled(pause, run) {
  let timer = 0;
  return (...values) => {
    clearTimeout(timer);
    timer = setTimeout(() => run(...values), pause);
  };
}
