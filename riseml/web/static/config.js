// @ts-check
/** The configuration of one experiment: riseml.yml as it ran, parameters, TF_CONFIG and variables of each job. */

import { get } from "./api.js";
import { showSoon } from "./experiment.js";
import { make } from "./dom.js";
import { linkTo, makeTable } from "./parts.js";

/** @import { Capsule, ExperimentView, GitState, JobEnvironment } from "../wire.js" */

/** @type {import("./experiment.js").Tab} */
export function showConfig(page) {
  const path = /** @type {const} */ (`/experiments/${encodeURIComponent(page.view.id)}`);
  const file = make("section", { "aria-label": "The file" });
  const variables = make("section", { "aria-label": "Variables" });
  const tensorflow = make("section", { "aria-label": "TF_CONFIG" });
  page.place.append(file, tensorflow, variables);
  showSoon(page, file, async () => {
    const { capsule } = await get(`${path}/capsule`, {}, page.signal);
    return [make("h2", {}, capsule.code.file || "riseml.yml"), makeCode(capsule.config, "riseml.yml"), makeFacts(capsule, page.view)];
  });
  showSoon(page, tensorflow, async () => {
    const { configs } = await get(`${path}/tfconfig`, {}, page.signal);
    const known = Object.entries(configs).filter(([, config]) => config !== null);
    return known.length ? [make("h2", {}, "TF_CONFIG"), ...known.map(([name, config]) => makeFold(name, makeCode(JSON.stringify(config, null, 2), name)))] : [];
  });
  showSoon(page, variables, async () => {
    const { jobs } = await get(`${path}/environment`, {}, page.signal);
    return [make("h2", {}, "Variables"), ...Object.entries(jobs).map(([name, found]) => makeFold(name, makeVariables(name, found)))];
  });
  return {};
}

/** @param {GitState} git */
function describeState(git) {
  if (git.missing?.length) {
    return `, without ${git.missing.join(", ")}`;
  }
  return git.clean === false ? ", changed" : "";
}

/** @param {Capsule} capsule @param {ExperimentView} view */
function makeFacts(capsule, view) {
  const git = capsule.code.git;
  const rows = [
    ["Image", view.image],
    ["Its digest", view.image_digest ?? ""],
    ["Code", capsule.code.digest.slice(0, 12)],
    ["Commit", git ? `${git.revision.slice(0, 12)}${describeState(git)}` : ""],
    ["Output", view.output && showOutput(view)],
    ["Repeats", capsule.rerun_of ?? ""],
    ...Object.entries(capsule.parameters).map(([name, value]) => [`Parameter ${name}`, value]),
  ];
  return makeTable(["What", "Value"], rows.filter(([, value]) => value), { caption: "Facts" });
}

/** @param {ExperimentView} view @returns {import("./parts.js").Cell} where the user finds its output */
function showOutput({ id, output }) {
  if (!output.startsWith("output://")) return output;
  return [make("a", { href: linkTo(id, "files") }, "Files"), ", or ", make("code", {}, `riseml cp ${output} DIR`)];
}

/** @param {string} text @param {string} label */
function makeCode(text, label) {
  return make("pre", { class: "code", tabindex: "0", role: "region", "aria-label": `${label}, text` }, text);
}

/** @param {string} name @param {HTMLElement} content */
function makeFold(name, content) {
  return make("details", {}, make("summary", {}, name), content);
}

/** @param {string} name @param {JobEnvironment} found */
function makeVariables(name, found) {
  const shown = Object.entries(found.variables);
  const hidden = found.hidden.map((one) => [one, make("span", { class: "soft" }, "hidden")]);
  return makeTable(["Name", "Value"], [...shown, ...hidden], { caption: `Variables of ${name}` });
}
