import { useAnswer } from "@/api/mutations";
import type { OpenRequestResponse } from "@/api/types";
import type { CardDetail } from "@/canvas/LaneCanvas";
import { StepCard } from "@/canvas/StepCard";
import { answerProblem } from "@/inspector/answerProblem";
import { useRun } from "@/stream/RunProvider";
import { newNodeState, type RunState } from "@/stream/runState";
import { showToast } from "@/ui/Toast";
import { useNow } from "@/ui/useNow";
import type { Folding } from "./folding";
import { InnerSteps } from "./InnerSteps";
import { amountInside, isUnfolded } from "./innerSteps";
import { RequestActions } from "./RequestActions";
import { isWorking, reasonOf, summariseStep } from "./stepSummary";

type RunStepProps = Folding & {
  path: string;
  selectedPath: string | null;
  isTabStop: boolean;
  /** Everything, unless the view is too far away for it. */
  detail?: CardDetail;
  onSelect: (path: string) => void;
};

/** The card of a step of the run that is shown. */
export function RunStep(props: RunStepProps) {
  const { path, selectedPath, folds, onFold, detail = "full", ...choice } = props;
  const node = useRun((run) => run.nodes.get(path));
  const now = useNow(node !== undefined && (isWorking(node) || node.status === "waiting"));
  const because = useRun((run) => reasonOf(run.nodes.get(path) ?? newNodeState(path), run));
  const request = useRun((run) => openRequestOf(run, path));
  const amount = useRun((run) => amountInside(run, path));
  const isOpen = useRun((run) => isUnfolded(run, path, folds));
  if (!node) return null;
  const { onSelect } = choice;
  return (
    <StepCard
      id={path}
      name={node.name}
      type={node.type ?? ""}
      status={node.status}
      isSelected={selectedPath !== null && isInside(selectedPath, path, isOpen)}
      isBox={detail === "box"}
      amountInside={amount}
      onFold={detail === "full" ? onFold : undefined}
      {...summariseStep(node, because, now)}
      {...(request && detail === "words" && { words: "Open it to answer" })}
      {...(request &&
        detail === "full" && {
          actions: <WaitingActions request={request} onRead={() => onSelect(path)} />,
        })}
      {...(isOpen && {
        inside: (
          <InnerSteps
            {...{ path, name: node.name, selectedPath, onSelect, folds, onFold }}
            hasButtons={detail === "full"}
          />
        ),
      })}
      {...choice}
    />
  );
}

type WaitingActionsProps = { request: OpenRequestResponse; onRead: () => void };

function WaitingActions({ request, onRead }: WaitingActionsProps) {
  const executionId = useRun((run) => run.executionId);
  const answer = useAnswer();
  const send = (decision: string) =>
    answer.mutate(
      { executionId, requestId: request.request_id, answer: { decision } },
      { onError: (error) => showToast({ kind: "error", text: answerProblem(error) }) },
    );
  return (
    <RequestActions
      request={request}
      onAnswer={answer.isPending ? undefined : send}
      onRead={onRead}
    />
  );
}

/** Whether a card stands for the selected step: it is its own, or one inside that is folded away. */
function isInside(selectedPath: string, path: string, isOpen: boolean): boolean {
  return selectedPath === path || (!isOpen && selectedPath.startsWith(`${path}[`));
}

function openRequestOf(run: RunState, path: string): OpenRequestResponse | undefined {
  for (const request of run.requests.values()) if (request.path === path) return request;
  return undefined;
}
