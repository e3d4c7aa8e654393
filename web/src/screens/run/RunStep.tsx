import { useShallow } from "zustand/react/shallow";
import { useAnswer } from "@/api/mutations";
import type { OpenRequestResponse } from "@/api/types";
import type { CardDetail } from "@/canvas/LaneCanvas";
import { StepCard } from "@/canvas/StepCard";
import { draftKey, useAnswerDraft } from "@/inspector/answerDraft";
import { answerProblem } from "@/inspector/answerProblem";
import { readRequest, requestsAt } from "@/inspector/requestFields";
import { BUDGET } from "@/stream/budget";
import { currentCallWords, linkedWords } from "@/stream/callWords";
import { fieldOf } from "@/stream/json";
import { useRun } from "@/stream/RunProvider";
import { newNodeState, type RunState } from "@/stream/runState";
import { plainLine } from "@/ui/plainLine";
import { showToast } from "@/ui/toasts";
import { useNow } from "@/ui/useNow";
import type { Folding } from "./folding";
import { InnerSteps } from "./InnerSteps";
import { amountInside, isUnfolded } from "./innerSteps";
import { RequestActions } from "./RequestActions";
import { durationOf, isWorking, reasonOf, summariseStep } from "./stepSummary";

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
  return props.detail === "box" ? <RunBox {...props} /> : <RunCard {...props} />;
}

/** Of hundreds in a view from far away: each looks only for what a box shows. */
function RunBox({ path, selectedPath, folds, isTabStop, onSelect }: RunStepProps) {
  const node = useRun((run) => run.nodes.get(path));
  const isOpen = useRun((run) => isUnfolded(run, path, folds));
  if (!node) return null;
  return (
    <StepCard
      id={path}
      name={node.name}
      type=""
      status={node.status}
      duration={node.endedAt === null ? "" : durationOf(node, 0)}
      isSelected={selectedPath !== null && isInside(selectedPath, path, isOpen)}
      isBox
      {...{ isTabStop, onSelect }}
    />
  );
}

function RunCard(props: RunStepProps) {
  const { path, selectedPath, folds, onFold, detail = "full", ...choice } = props;
  const node = useRun((run) => run.nodes.get(path));
  const now = useNow(node !== undefined && (isWorking(node) || node.status === "waiting"));
  const because = useRun((run) => reasonOf(run.nodes.get(path) ?? newNodeState(path), run));
  const calling = useRun((run) => callingWords(run, path));
  const requests = useRun(useShallow((run: RunState) => requestsAt(run, path)));
  const amount = useRun((run) => amountInside(run, path));
  const isOpen = useRun((run) => isUnfolded(run, path, folds));
  if (!node) return null;
  const { onSelect } = choice;
  const [first] = requests;
  // What is approved by a click on the card has to be on the card.
  const asked = first && readRequest(first).tool && calling;
  return (
    <StepCard
      id={path}
      name={node.name}
      type={node.type ?? ""}
      status={node.status}
      isSelected={selectedPath !== null && isInside(selectedPath, path, isOpen)}
      amountInside={amount}
      onFold={detail === "full" ? onFold : undefined}
      {...summariseStep(node, because, now)}
      {...(calling && { words: calling, isStreaming: false })}
      {...(first && detail === "words" && { words: "Open it to answer" })}
      {...(first &&
        detail === "full" && {
          ...(asked && { meta: asked }),
          actions: (
            <WaitingActions
              request={first}
              others={requests.length - 1}
              onRead={() => onSelect(path)}
            />
          ),
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

type WaitingActionsProps = {
  request: OpenRequestResponse;
  /** How many more requests the step has. */
  others: number;
  onRead: () => void;
};

function WaitingActions({ request, others, onRead }: WaitingActionsProps) {
  const executionId = useRun((run) => run.executionId);
  const answer = useAnswer();
  const draft = useAnswerDraft(draftKey(executionId, request.request_id), readRequest(request));
  const send = (decision: string) =>
    answer.mutate(
      { executionId, requestId: request.request_id, answer: draft.answerWith(decision) },
      { onError: (error) => showToast({ kind: "error", text: answerProblem(error) }) },
    );
  return (
    <RequestActions
      request={request}
      others={others}
      onAnswer={answer.isPending || draft.isBroken ? undefined : send}
      onRead={onRead}
    />
  );
}

/** Whether a card stands for the selected step: it is its own, or one inside that is folded away. */
function isInside(selectedPath: string, path: string, isOpen: boolean): boolean {
  return selectedPath === path || (!isOpen && selectedPath.startsWith(`${path}[`));
}

/** What an agent calls right now, or waits for; of a linked step, who has called it. */
function callingWords(run: RunState, path: string): string {
  const node = run.nodes.get(path);
  if (node === undefined) return "";
  if (node.status === "linked") return linkedWords(run, node);
  if (node.status === "waiting" && waitsForBudget(run, path)) return "Waits for a higher budget";
  return isWorking(node) || node.status === "waiting" ? plainLine(currentCallWords(run, node)) : "";
}

function waitsForBudget(run: RunState, path: string): boolean {
  return [...run.requests.values()].some(({ request }) => {
    const waiting = fieldOf(request, "kind") === BUDGET ? fieldOf(request, "waiting") : null;
    return Array.isArray(waiting) && waiting.includes(path);
  });
}
