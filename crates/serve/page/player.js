// Steps through the snapshots of a time series, by hand or by itself.

import { button, make } from "./dom.js";

const PACE = 180; // milliseconds of a snapshot

export class Player {
  constructor(show) {
    this.show = show;
    this.play = button("Play", () => (this.timer ? this.stop() : this.start()));
    const moved = () => this.go(Number(this.slider.value));
    this.slider = make("input", { type: "range", id: "frame", min: 0, value: 0, "aria-label": "Snapshot", oninput: moved });
    this.place = make("output", { for: "frame", "aria-live": "off" }); // the slider says it
    this.element = make("div", { class: "player", hidden: true }, this.play, this.slider, this.place);
  }

  // Sets the number of frames and what they are called; returns the frame that is shown.
  length(count, word) {
    this.stop();
    Object.assign(this, { count, word });
    this.element.hidden = count < 2;
    this.slider.max = count - 1;
    this.slider.setAttribute("aria-label", word === "sample" ? "Sample" : "Snapshot");
    if (Number(this.slider.value) >= count) this.slider.value = 0;
    this.say();
    return Number(this.slider.value);
  }

  say() {
    this.place.textContent = `${this.word} ${Number(this.slider.value) + 1} of ${this.count}`;
    this.slider.setAttribute("aria-valuetext", this.place.textContent);
  }

  go(frame) {
    this.slider.value = frame;
    this.say();
    this.show(frame);
  }

  start() {
    this.play.textContent = "Stop";
    this.timer = setInterval(() => (this.element.isConnected ? this.go((Number(this.slider.value) + 1) % this.count) : this.stop()), PACE);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = 0;
    this.play.textContent = "Play";
  }
}
