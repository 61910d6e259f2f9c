// The view of a job's ranks, in a notebook (`render`) and in a stand-alone page (`openPage`): a bundle of its own.

import { unzipped } from "./logic.js";
import { mount, pageHost } from "./main.js";
import { mountRanks } from "./ranks.js";

/** @import { RanksModel } from "./rank_wire" */
/** @import { WidgetModel } from "./view" */

/**
 * The view of a job; the report of a group is a view in it, whose selection is not in the address.
 * @param {HTMLElement} root
 * @param {RanksModel} content
 */
const mountJob = (root, content) =>
  mountRanks(root, content, (body, view, selected) => {
    const host = { ...pageHost(view), hash: undefined, link: () => {} };
    host.set("selected", selected);
    return mount(body, host);
  });

/**
 * The data of a job, which are compressed where they are large.
 * @param {any} given
 * @returns {Promise<RanksModel>}
 */
const whole = async (given) => (given?.gzip ? /** @type {any} */ (await unzipped(given.gzip)) : given);

/**
 * anywidget's entry point; the data do not change.
 * @param {{ model: WidgetModel, el: HTMLElement }} widget
 */
function render({ model, el }) {
  el.classList.add("dyn-widget");
  const stop = whole(model.get("job")).then((content) => mountJob(el, content));
  return () => void stop.then((end) => end());
}

/** The page that widgets/render/ranks_page.py writes: its data are in `#dyn-data`. */
export async function openPage() {
  const element = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
  const data = element("dyn-data");
  const text = String(data.textContent);
  const content = data.dataset.packed === "gzip" ? await whole({ gzip: text }) : JSON.parse(text);
  return mountJob(element("dyn-view"), content);
}

export default { render };
