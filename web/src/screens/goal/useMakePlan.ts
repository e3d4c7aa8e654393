import { useNavigate } from "react-router";
import { useExecute } from "@/api/mutations";
import type { PlanRequest, PlanResponse } from "@/api/types";
import { executeRequest, useGoalDraft } from "@/screens/goal/goalDraft";
import { usePlanWriting, writePlan } from "@/screens/goal/planWriting";
import { announce } from "@/ui/announcer";
import { formatAmount } from "@/ui/format";
import { showToast } from "@/ui/toasts";

/** Returns a function that plans, also while another page is open; it gives null where no plan came of it. */
export function useMakePlan(): (request: PlanRequest) => Promise<PlanResponse | null> {
  const navigate = useNavigate();
  const execute = useExecute();
  const run = async (plan: PlanResponse) => {
    try {
      const made = await execute.mutateAsync(executeRequest(plan.plan_id));
      navigate(`/runs/${made.execution_id}`);
    } catch {
      navigate(`/?plan=${plan.plan_id}`); // the page of the plan says why it cannot run
    }
  };
  return async (request) => {
    const plan = await writePlan(request);
    if (!plan) return null;
    const { runWhenWritten, change } = useGoalDraft.getState();
    change({ prompt: "", runWhenWritten: false });
    announce(`The plan is written: ${formatAmount(plan.nodes.length, "step")}`);
    if (runWhenWritten) {
      await run(plan);
    } else if (!usePlanWriting.getState().isShown) {
      showToast({
        text: `The plan is written: ${plan.title}`,
        action: { label: "Show it", onSelect: () => navigate("/") },
      });
    }
    return plan;
  };
}
