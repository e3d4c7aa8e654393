import { create } from "zustand";
import { createJSONStorage, persist } from "zustand/middleware";
import type { ExecuteOptionsModel, ExecuteRequest } from "@/api/types";
import type { ModelChoice } from "@/screens/goal/providerChoice";

export type RunOptions = Pick<
  ExecuteOptionsModel,
  "scheduling" | "on_failure" | "max_parallel" | "budget"
>;

interface GoalDraft extends ModelChoice {
  prompt: string;
  options: RunOptions;
  /** A person approves the plan before its first step starts. */
  approveFirst: boolean;
  /** Run the plan once it is written, without looking at it. */
  runWhenWritten: boolean;
  change: (changes: Partial<Omit<GoalDraft, "change">>) => void;
}

/** Returns the request body that executes a plan. */
export function executeRequest(planId: string): ExecuteRequest {
  const { options, approveFirst } = useGoalDraft.getState();
  return { plan_id: planId, options, require_approval: approveFirst, start: true };
}

/** The goal being written, kept while this tab is open: leaving the page loses nothing. */
export const useGoalDraft = create<GoalDraft>()(
  persist(
    (set) => ({
      prompt: "",
      provider: null,
      model: null,
      options: {},
      approveFirst: false,
      runWhenWritten: false,
      change: (changes) => set(changes),
    }),
    { name: "planwave.goal", storage: createJSONStorage(() => sessionStorage) },
  ),
);
