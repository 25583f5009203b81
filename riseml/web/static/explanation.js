// @ts-check
/** Why an experiment waits, host by host; or where its jobs are, and why there. */

import { get } from "./api.js";
import { showSoon } from "./experiment.js";
import { fill, make } from "./dom.js";
import { makeCoalesced } from "./feed.js";
import { makeLink, makeState, makeTable } from "./parts.js";

/** @import { ExplanationView } from "../wire.js" */

/** @type {import("./experiment.js").Tab} */
export function showExplanation(page) {
  fill(page.place, make("p", { class: "soft" }, "The server asks its hosts."));
  const read = makeCoalesced(() => showSoon(page, page.place, async () => describe(await get(`/experiments/${encodeURIComponent(page.view.id)}/explain`, {}, page.signal))));
  read();
  return { update: read };
}

/** @param {ExplanationView} found */
function describe(found) {
  const queue = found.queue && make("p", {}, `Number ${found.queue.position} of ${found.queue.length} in the queue.`);
  return [make("p", { class: "summary" }, found.summary), queue, makeBlockers(found), makePlaces(found), makeHosts(found), makeActivities(found)];
}

/** @param {ExplanationView} found */
export function makeBlockers(found) {
  if (!found.blockers.length) return null;
  const items = found.blockers.map((one) => make("li", {}, one.text, ...one.by.flatMap((id) => [" ", makeLink(id)])));
  return make("ul", {}, items);
}

/** @param {ExplanationView} found */
function makePlaces(found) {
  if (!found.jobs.length) return null;
  const rows = found.jobs.map((job) => [job.job, makeState(job.state), job.host, job.gpus.join(", "), job.address ?? "", job.why]);
  return makeTable(["Job", "State", "Host", "GPUs", "Address", "Why there"], rows, { caption: "Where the jobs are" });
}

/** @param {ExplanationView} found */
function makeHosts(found) {
  if (!found.hosts.length) return null;
  const rows = found.hosts.map((host) => {
    const lacks = host.jobs.flatMap((job) => job.shortages.map((one) => `${job.job}: ${one.text}`));
    return [host.host, host.text || lacks.join("; ") || "has room"];
  });
  return make("section", { "aria-label": "Hosts" }, make("h2", {}, "Hosts"), makeTable(["Host", "Why not"], rows, { caption: "Hosts" }));
}

/** @param {ExplanationView} found */
function makeActivities(found) {
  if (!found.activities.length) return null;
  const rows = found.activities.map((one) => [one.host, one.work, one.what, one.total ? `${Math.round((100 * one.done) / one.total)} %` : ""]);
  return makeTable(["Host", "Work", "What", "Done"], rows, { caption: "What hosts do for its environment", numbers: [3] });
}
