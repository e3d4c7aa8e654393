import type { OpenRequestResponse } from "@/api/types";
import { isObject, numberOf } from "@/json";
import { BUDGET } from "@/stream/budget";
import { askingPath } from "@/stream/calls";
import { isTimer } from "@/stream/json";
import type { RunState } from "@/stream/runState";
import type { JsonSchema } from "@/ui/schema";

/** The tool of a call that a person is asked about. */
export type RequestedTool = {
  name: string;
  /** `tool`, `mcp`, `http` or `flow`. */
  kind: string;
  /** What a call does to the world: `none`, `read`, `write` or `once`. */
  effect: string;
  /** What else is known of it, such as the server of an MCP tool. */
  details: readonly (readonly [name: string, value: string])[];
};

/** What a request asks, as far as a page can show it. */
export type RequestFields = {
  kind: string;
  /** The tool that an agent wants to call, where the request is about a call. */
  tool: RequestedTool | null;
  prompt: string;
  /** The decisions there are; none where any answer is taken. */
  actions: string[];
  form: JsonSchema | null;
  value: unknown;
  /** What an edited value has to fit, as far as the request says. */
  valueSchema: JsonSchema | null;
  isEditable: boolean;
  /** When it is answered by itself, in ms since 1970, and how. */
  deadline: number | null;
  timeoutAction: string | null;
  /** Of a request for a higher budget, the limits that hold now. */
  limits: Readonly<Record<string, number>>;
  /** And what is used of them. */
  used: Readonly<Record<string, number>>;
  /** And the limits with which the run can go on, of those that do not suffice. */
  proposed: Readonly<Record<string, number>>;
};

/** Reads the request of a step; fields of an unknown form are left out. */
export function readRequest({ request, since, timeout_s }: OpenRequestResponse): RequestFields {
  const fields: Record<string, unknown> = isObject(request) ? { ...request } : { prompt: request };
  const actions = Array.isArray(fields.actions) ? fields.actions : [];
  return {
    kind: text(fields.kind),
    tool: toolOf(fields.tool),
    prompt: text(fields.prompt) || text(fields.message) || text(fields.question),
    actions: actions.filter((action) => typeof action === "string"),
    form: isObject(fields.form) ? fields.form : null,
    value: fields.value,
    valueSchema: isObject(fields.valueSchema) ? fields.valueSchema : null,
    isEditable: fields.editable === true,
    deadline: timeout_s === null ? null : Date.parse(since) + Number(timeout_s) * 1000,
    timeoutAction: text(fields.timeoutAction) || null,
    limits: fields.kind === BUDGET ? numbersOf(fields.limits) : {},
    used: fields.kind === BUDGET ? numbersOf(fields.used) : {},
    proposed: fields.kind === BUDGET ? numbersOf(fields.proposed) : {},
  };
}

/** Returns whether the value can be edited in a form: its schema names each of its fields. */
export function hasForm({ value, valueSchema }: RequestFields): boolean {
  const named = isObject(valueSchema?.properties) ? valueSchema.properties : {};
  const count = Object.keys(named).length;
  return isObject(value) && count > 0 && Object.keys(value).every((name) => name in named);
}

/** Returns the steps that ask a person something, with their requests, oldest first. */
export function openQuestions(run: RunState): { path: string; request_id: string }[] {
  return [...run.requests.values()].flatMap(({ path, request, request_id }) =>
    path === null || isTimer(request) ? [] : [{ path: askingPath(path, request), request_id }],
  );
}

/** Returns the open requests that a step shows: its own, and those about its calls; oldest first. */
export function requestsAt(run: RunState, path: string): OpenRequestResponse[] {
  return [...run.requests.values()].filter(
    (each) => each.path !== null && askingPath(each.path, each.request) === path,
  );
}

/** "approve" is "Approve"; "ask_again" is "Ask again". */
export function actionLabel(action: string): string {
  const words = action.replaceAll(/[_-]+/g, " ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

function toolOf(value: unknown): RequestedTool | null {
  if (!isObject(value) || typeof value.name !== "string") return null;
  const { name, kind, effect, call_id: _, ...details } = value;
  return {
    name,
    kind: text(kind),
    effect: text(effect),
    details: Object.entries(details).flatMap(([label, each]) =>
      typeof each === "string" ? [[label, each] as const] : [],
    ),
  };
}

function numbersOf(value: unknown): Record<string, number> {
  const entries = Object.entries(isObject(value) ? value : {});
  return Object.fromEntries(
    entries.flatMap(([name, each]) => {
      const number = numberOf(each);
      return number === null ? [] : [[name, number]];
    }),
  );
}

function text(value: unknown): string {
  return typeof value === "string" ? value : "";
}
