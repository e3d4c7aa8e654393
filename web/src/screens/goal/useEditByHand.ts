import { useNavigate } from "react-router";
import { ApiError } from "@/api/http";
import { useCreateFlow } from "@/api/mutations";
import { showError } from "@/api/showError";
import type { FlowCreateRequest } from "@/api/types";
import { type PlanWriting, stopPlan } from "@/screens/goal/planWriting";

const LONGEST_NAME = 60;
/** So many drafts of one goal get a name of their own. */
const MOST_OF_ONE_NAME = 20;

/** Returns what was written of a plan as a draft; what no graph can hold is left out: a second step of one id, and
 * edges without a step at both ends. */
export function draftOf({ request, title, steps, edges }: PlanWriting): FlowCreateRequest {
  const byId = new Map(steps.map((step) => [step.id, step]));
  const nodes = [...byId.values()].map(({ choice, ...step }) => ({ ...step, data: { ...choice } }));
  const drawn = edges.filter(({ source, target }) => byId.has(source) && byId.has(target));
  const graph = {
    title: title ?? request.prompt,
    user_prompt: request.prompt,
    nodes,
    edges: drawn.map(({ source, target, isLink }) => ({
      source,
      target,
      data: { channel: isLink ? "link" : "flow" },
    })),
  };
  const name = graph.title.slice(0, LONGEST_NAME).trim();
  return { name, description: request.prompt, draft: true, graph };
}

/** Returns a function that stops the writing and opens what there is of the plan in the editor. */
export function useEditByHand(writing: PlanWriting): () => void {
  const { mutateAsync } = useCreateFlow();
  const navigate = useNavigate();
  const create = async () => {
    const draft = draftOf(writing);
    for (let number = 1; ; number += 1) {
      const name = number === 1 ? draft.name : `${draft.name} ${number}`;
      try {
        return await mutateAsync({ ...draft, name });
      } catch (error) {
        const isTaken = error instanceof ApiError && error.code === "name-taken";
        if (!isTaken || number === MOST_OF_ONE_NAME) throw error;
      }
    }
  };
  return () =>
    void create()
      .then(({ plan_id }) => {
        stopPlan();
        navigate(`/flows/${plan_id}/edit`);
      })
      .catch(showError);
}
