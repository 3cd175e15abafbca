// Darcy flow without a server: the drawing page of `lamo serve`, whose predictions a worker of this browser computes.

import * as api from "./page/api.js"; // by the import map, local.js
import { card as cardOf, details } from "./page/card.js";
import { Darcy } from "./page/darcy.js";
import { make } from "./page/dom.js";

const place = id => document.getElementById(id);

// Shows the sentence of a failure; null removes it.
function say(failure) {
  place("alarm").hidden = !failure;
  place("alarm").textContent = failure ? failure.message : "";
}

document.querySelector(".skip").addEventListener("click", event => {
  event.preventDefault();
  place("try").focus();
});

try {
  const card = await api.card(), drawing = new Darcy(card, say);
  place("card").replaceChildren(...cardOf(card));
  place("try").replaceChildren(drawing.element);
  const here = make("p", { class: "keys" }, "The model runs in this browser. Nothing that you draw or open leaves this machine.");
  place("more").replaceChildren(here, ...details(card).filter(part => part.id !== "call")); // there is no server to call
} catch (failure) {
  say(failure);
}
place("loading").hidden = true;
