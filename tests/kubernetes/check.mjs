// SPDX-License-Identifier: Apache-2.0
// Holds files of Kubernetes objects against its schemas, and against each other: what selects finds
// what it is to, what is mounted is there, and the commands are those that espalier has.
//
//   node check.mjs FILE...            says what is wrong, and exits with 1 if anything is
//   node check.mjs --planted FILE...  breaks each in turn, and exits with 1 if a break goes unseen
import { readFileSync } from 'node:fs';
import { parseAllDocuments } from 'yaml';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { Service } from 'kubernetes-models/v1';
import { StatefulSet } from 'kubernetes-models/apps/v1';

const models = {
  'v1 Service': Service,
  'policy/v1 PodDisruptionBudget': PodDisruptionBudget,
  'apps/v1 StatefulSet': StatefulSet,
};

const holds = (labels, wanted) =>
  Object.entries(wanted ?? {}).length > 0 &&
  Object.entries(wanted).every(([name, value]) => labels?.[name] === value);

/** What the schema of its kind says; no mistake: nothing. */
function mistakesOfSchema(object) {
  const model = models[`${object.apiVersion} ${object.kind}`];
  if (!model) return [`${object.kind} of ${object.apiVersion} is not checked here`];
  try {
    new model(object).validate();
    return [];
  } catch (error) {
    return [`${object.kind}: ${error.message}`];
  }
}

function mistakesOfPod(set) {
  const pod = set.spec.template.spec;
  const volumes = [...pod.volumes, ...set.spec.volumeClaimTemplates.map((each) => each.metadata)];
  const names = new Set(volumes.map((each) => each.name));
  const wrong = [];
  for (const container of [...pod.initContainers, ...pod.containers]) {
    for (const mount of container.volumeMounts) {
      if (!names.has(mount.name)) wrong.push(`${container.name} mounts ${mount.name}, which is none`);
    }
    const variables = new Set((container.env ?? []).map((each) => each.name));
    const shell = [container.command, container.readinessProbe?.exec?.command].flat().join('\n');
    for (const [, name] of shell.matchAll(/"?\$([A-Z_]+)/g)) {
      if (!variables.has(name)) wrong.push(`${container.name} uses ${name}, which is not set`);
    }
  }
  return wrong;
}

function mistakesTogether(objects) {
  const of = (kind) => objects.filter((each) => each.kind === kind);
  const wrong = [];
  for (const set of of('StatefulSet')) {
    const labels = set.spec.template.metadata.labels;
    if (!holds(labels, set.spec.selector.matchLabels)) wrong.push('the set selects other pods');
    const service = of('Service').find((each) => each.metadata.name === set.spec.serviceName);
    if (!service) wrong.push(`there is no service ${set.spec.serviceName}`);
    else if (!holds(labels, service.spec.selector)) wrong.push('the service selects other pods');
    else if (service.spec.clusterIP !== 'None') wrong.push('pods have no names by that service');
    const budget = of('PodDisruptionBudget')[0];
    if (!budget || !holds(labels, budget.spec.selector.matchLabels)) {
      wrong.push('no disruption budget is of these pods');
    }
    const ports = set.spec.template.spec.containers.flatMap((each) => each.ports);
    for (const port of service?.spec.ports ?? []) {
      const same = (each) => each.containerPort === port.port && each.protocol === port.protocol;
      if (!ports.some(same)) wrong.push(`nobody listens at the service's port ${port.port}`);
    }
    if (!set.spec.template.spec.containers.every((each) => each.readinessProbe)) {
      wrong.push('a container does not say when it is ready');
    }
    wrong.push(...mistakesOfPod(set));
  }
  return wrong;
}

function mistakesIn(objects) {
  const wrong = objects.flatMap(mistakesOfSchema);
  return wrong.length > 0 ? wrong : mistakesTogether(objects);
}

function read(file) {
  return parseAllDocuments(readFileSync(file, 'utf8')).map((document) => {
    if (document.errors.length > 0) throw new Error(`${file}: ${document.errors[0].message}`);
    return document.toJS();
  });
}

const breaks = [
  (set) => delete set.spec.template.spec.containers[0].image && delete set.spec.serviceName,
  (set) => (set.spec.replicas = 'three'),
  (set) => (set.spec.template.metadata.labels = { app: 'other' }),
  (set) => (set.spec.serviceName = 'other'),
  (set) => (set.spec.template.spec.containers[0].volumeMounts[0].name = 'other'),
  (set) => set.spec.template.spec.containers[0].env.shift(),
  (set) => (set.spec.template.spec.containers[0].ports[0].containerPort = 1),
  (set) => delete set.spec.template.spec.containers[0].readinessProbe,
];

const planted = process.argv[2] === '--planted';
const files = process.argv.slice(planted ? 3 : 2);
if (files.length === 0) throw new Error('no file is named');
let failed = false;
for (const file of files) {
  for (const wrong of mistakesIn(read(file))) {
    console.error(`${file}: ${wrong}`);
    failed = true;
  }
  for (const [number, breaks_it] of (planted ? breaks : []).entries()) {
    const objects = read(file);
    breaks_it(objects.find((each) => each.kind === 'StatefulSet'));
    const wrong = mistakesIn(objects);
    console.log(`break ${number}: ${wrong[0] ?? 'not seen'}`);
    failed ||= wrong.length === 0;
  }
}
process.exit(failed ? 1 : 0);
