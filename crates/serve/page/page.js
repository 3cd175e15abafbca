// The page of `lamo serve`: pick a model, read its card, try it.

import * as api from "./api.js";
import { card as cardOf, details } from "./card.js";
import { Darcy, isDrawable } from "./darcy.js";
import { make, text } from "./dom.js";
import { Explorer } from "./explore.js";

const place = id => document.getElementById(id);

// Shows the sentence of a failure; null removes it.
function say(failure) {
  place("alarm").hidden = !failure;
  place("alarm").textContent = failure ? failure.message : "";
}

let models = [], shown = null; // what is shown is known by its id: the name, with the version where a name has several

function identified(all) {
  const several = name => all.filter(model => model.name === name).length > 1;
  return all.map(model => ({ ...model, id: several(model.name) ? `${model.name}@${model.version}` : model.name }));
}

// The list of models; each is an address of its own, so that links, history and keys work as everywhere.
function list() {
  place("models").replaceChildren(...models.map(model => make("li", {},
    make("a", { href: `#${encodeURIComponent(model.id)}`, "aria-current": model.id === shown ? "page" : null },
      model.id, model.error ? make("small", { title: "mean relative L2 error" }, text(Number(model.error.toPrecision(2)))) : null))));
}

// Shows the model that the address names, the first one without a name.
async function show() {
  const wanted = decodeURIComponent(location.hash.slice(1));
  if (wanted && wanted === shown) return;
  const model = models.find(one => one.id === wanted || one.name === wanted) || (wanted ? null : models[0]);
  if (!model) return say(new Error(models.length ? `There is no model ${wanted} here.` : "The server has no models."));
  shown = model.id;
  document.title = `${model.id} \u2013 lamo`;
  list();
  say(null);
  place("card").replaceChildren();
  place("try").replaceChildren();
  place("more").replaceChildren();
  try {
    const card = { ...(await api.card(model.id)), id: model.id };
    if (shown !== model.id) return; // another model was picked meanwhile
    const tried = isDrawable(card) ? new Darcy(card, say) : new Explorer(card, say);
    place("card").replaceChildren(...cardOf(card));
    place("try").replaceChildren(tried.element);
    place("more").replaceChildren(...details(card));
    if (tried.begin) await tried.begin();
  } catch (failure) {
    say(failure);
  }
}

// The link is no address of a model; it moves the focus alone.
document.querySelector(".skip").addEventListener("click", event => {
  event.preventDefault();
  place("try").focus();
});

try {
  models = identified(await api.models());
  list();
  addEventListener("hashchange", show);
  await show();
} catch (failure) {
  say(failure);
}
