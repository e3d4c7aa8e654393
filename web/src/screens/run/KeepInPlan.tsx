import { useNavigate } from "react-router";
import { usePromote } from "@/api/mutations";
import { usePlan } from "@/api/queries";
import type { GraphDocument } from "@/api/types";
import { writeJson } from "@/json";
import { ErrorNote } from "@/screens/ErrorNote";
import { operationsBetween, type PlanOperation } from "@/screens/editor/operations";
import type { RunState } from "@/stream/runState";
import { Button } from "@/ui/Button";
import { Dialog } from "@/ui/Dialog";
import { Note } from "@/ui/Note";
import { Skeleton } from "@/ui/Skeleton";
import { showToast } from "@/ui/toasts";
import styles from "./KeepInPlan.module.css";

type KeepInPlanProps = { run: RunState; planId: string; onClose: () => void };

/** Makes the changed graph of a run the newest revision of its plan, after what differs was shown. */
export function KeepInPlan({ run, planId, onClose }: KeepInPlanProps) {
  const plan = usePlan(planId);
  const promote = usePromote(run.executionId);
  const navigate = useNavigate();
  const now: GraphDocument | null = plan.data
    ? { nodes: plan.data.nodes, edges: plan.data.edges }
    : null;
  const title = plan.data?.title ?? "";
  const operations =
    now && run.graph ? operationsBetween({ title, graph: now }, { title, graph: run.graph }) : [];
  const keep = () =>
    plan.data &&
    promote.mutate(
      { hash: plan.data.hash },
      {
        onSuccess: ({ revision }) => {
          showToast({
            text: `Kept as revision ${revision}.`,
            action: { label: "Open the plan", onSelect: () => navigate(`/plans/${planId}`) },
          });
          onClose();
        },
      },
    );
  const error = plan.error ?? promote.error;
  return (
    <Dialog
      open
      onClose={onClose}
      wide
      title="Keep in the plan"
      description={`What ran here becomes revision ${(plan.data?.revision ?? 0) + 1} of the plan.`}
      footer={
        <Button
          kind="primary"
          onClick={keep}
          disabledReason={whyNot(now, operations, promote.isPending)}
        >
          Keep it
        </Button>
      }
    >
      {error && <ErrorNote error={error} />}
      {now === null && !error && <Skeleton label="Loading the plan" lines={3} />}
      {now !== null && operations.length === 0 && <Note>The plan is the same already.</Note>}
      <ul className={styles.changes} aria-label="What changes in the plan">
        {operations.map((operation, index) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: the list never changes its order
          <li key={index}>
            <Change operation={operation} before={now} after={run.graph} />
          </li>
        ))}
      </ul>
    </Dialog>
  );
}

function whyNot(
  now: GraphDocument | null,
  operations: readonly PlanOperation[],
  isPending: boolean,
): string | undefined {
  if (now === null) return "Loading the plan";
  if (operations.length === 0) return "Nothing differs";
  return isPending ? "Saving …" : undefined;
}

type ChangeProps = {
  operation: PlanOperation;
  before: GraphDocument | null;
  after: GraphDocument | null;
};

/** One change in words; of a step field by field, before and after. */
function Change({ operation, before, after }: ChangeProps) {
  const name = (id: string) =>
    [...(after?.nodes ?? []), ...(before?.nodes ?? [])].find((each) => each.id === id)?.name || id;
  switch (operation.op) {
    case "add_node":
      return <>{operation.node.name || operation.node.id} is new.</>;
    case "remove_node":
      return <>{name(operation.id)} is taken out.</>;
    case "add_edge":
      return (
        <>
          {name(operation.edge.source)} leads to {name(operation.edge.target)}.
        </>
      );
    case "remove_edge":
      return <>A connection is taken out.</>;
    case "update_node": {
      const old = before?.nodes.find(({ id }) => id === operation.id);
      return (
        <>
          <b>{name(operation.id)}</b>
          {Object.entries(operation.set).map(([field, value]) => (
            <p key={field}>
              {field === "description" ? "Task" : field}:{" "}
              <del>{textOf(old?.[field as keyof typeof old])}</del> <ins>{textOf(value)}</ins>
            </p>
          ))}
        </>
      );
    }
    case "set_title":
      return <>The title is {operation.title}.</>;
  }
}

function textOf(value: unknown): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : writeJson(value);
}
