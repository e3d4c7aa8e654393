import { create } from "zustand";
import { ApiError } from "@/api/http";
import { streamPlan } from "@/api/planStream";
import type { PlanRepair, PlanRequest, PlanResponse, PlanStreamEvent } from "@/api/types";
import type { PlannedEdge, PlannedStep } from "@/canvas/PlanLanes";

/** A step as a model has written it. */
export type WrittenStep = PlannedStep & {
  /** Who runs it, where the model says so. */
  choice: { provider?: string; model?: string };
};

/** A plan while a model writes it; at most one at a time. */
export interface PlanWriting {
  request: PlanRequest;
  startedAt: number;
  title: string | null;
  steps: readonly WrittenStep[];
  edges: readonly PlannedEdge[];
  /** The reply so far. */
  text: string;
  /** The last words of the model's reasoning, which come before the reply. */
  reasoning: string;
  /** Why the model writes the plan again. */
  repair: PlanRepair | null;
  /** The names of all steps so far, those that were voided too, by id. */
  names: ReadonlyMap<string, string>;
  plan: PlanResponse | null;
  error: ApiError | null;
}

const REASONING_CHARS = 300;

/** Returns the writing after one more event. */
export function foldPlanEvent(writing: PlanWriting, { event, data }: PlanStreamEvent): PlanWriting {
  switch (event) {
    case "delta": {
      if (!data.reasoning) return { ...writing, text: writing.text + data.text };
      const reasoning = (writing.reasoning + data.text).slice(-REASONING_CHARS);
      return { ...writing, reasoning };
    }
    case "title":
      return { ...writing, title: data.title };
    case "node": {
      if (!data.id) return writing;
      const { id, name = id, type = "agent", description = "", provider, model } = data;
      const choice = { ...(provider && { provider }), ...(model && { model }) };
      const steps = [...writing.steps, { id, name, type, description, choice }];
      return { ...writing, steps, names: new Map(writing.names).set(id, name) };
    }
    case "edge": {
      const { source, target, channel } = data;
      if (!source || !target) return writing;
      const edge = { source, target, isLink: channel === "link" };
      return { ...writing, edges: [...writing.edges, edge] };
    }
    case "repair":
      return { ...writing, title: null, steps: [], edges: [], text: "", repair: data };
    case "plan":
      return { ...writing, plan: data };
    case "problem":
    case "server_draining":
      return { ...writing, error: new ApiError(data.code, data.detail, data.status, data) };
    default:
      return writing; // the plan lists all fixes; the others are of changes
  }
}

/** Returns a plan of which nothing is written yet. */
export function startOf(request: PlanRequest): PlanWriting {
  return {
    request,
    startedAt: Date.now(),
    title: null,
    steps: [],
    edges: [],
    text: "",
    reasoning: "",
    repair: null,
    names: new Map(),
    plan: null,
    error: null,
  };
}

interface PlanWritingState {
  /** The plan being written, or its result until the goal screen has shown it. */
  writing: PlanWriting | null;
  /** Whether the goal screen is on the page; the writing goes on while it is not. */
  isShown: boolean;
  /** The plan that was written last, if what it assumes is asked before it is shown. */
  asking: string | null;
}

export const usePlanWriting = create<PlanWritingState>(() => ({
  writing: null,
  isShown: false,
  asking: null,
}));

let stopWriting = new AbortController();

/** Has a plan written; resolves with the plan, or with null where it failed or was stopped. */
export async function writePlan(request: PlanRequest): Promise<PlanResponse | null> {
  stopWriting.abort();
  stopWriting = new AbortController();
  const { signal } = stopWriting;
  usePlanWriting.setState({ writing: startOf(request) });
  const update = (fold: (writing: PlanWriting) => PlanWriting) =>
    usePlanWriting.setState(({ writing }) =>
      writing && !signal.aborted ? { writing: fold(writing) } : {},
    );
  try {
    for await (const event of streamPlan(request, signal)) {
      update((writing) => foldPlanEvent(writing, event));
      if (event.event === "plan") return event.data;
    }
  } catch (error) {
    if (signal.aborted) return null;
    if (!(error instanceof ApiError)) throw error;
    update((writing) => ({ ...writing, error }));
  }
  return null;
}

/** Stops the writing; nothing of the plan is kept. */
export function stopPlan(): void {
  stopWriting.abort();
  usePlanWriting.setState({ writing: null });
}
