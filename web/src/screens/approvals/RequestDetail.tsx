import { type RefObject, useMemo } from "react";
import { useNavigate } from "react-router";
import { useAnswer } from "@/api/mutations";
import type { ExecutionDigest, PendingRequest } from "@/api/types";
import { AnswerFields } from "@/inspector/AnswerFields";
import { draftKey, type RequestAnswer, useAnswerDraft } from "@/inspector/answerDraft";
import { answerProblem, formErrors, isOver } from "@/inspector/answerProblem";
import { decisionWords } from "@/inspector/answerWords";
import { RequestForm, whyNotSent } from "@/inspector/RequestForm";
import { actionLabel, type RequestFields, readRequest } from "@/inspector/requestFields";
import { Markdown } from "@/ui/Markdown";
import { Note } from "@/ui/Note";
import { Status } from "@/ui/Status";
import { useShortcuts } from "@/ui/shortcuts";
import { showToast } from "@/ui/toasts";
import { ChangeRequest } from "./ChangeRequest";
import { DecisionBar } from "./DecisionBar";
import { GivenAnswer } from "./GivenAnswer";
import { PlanRequest } from "./PlanRequest";
import styles from "./RequestDetail.module.css";
import { RequestFacts } from "./RequestFacts";
import { RequestHeader } from "./RequestHeader";
import { keyOf, PLAN_APPROVAL, titleOf } from "./requestWords";
import { useRequestGraph } from "./useRequestGraph";

type RequestDetailProps = {
  request: PendingRequest;
  digest: ExecutionDigest | undefined;
  /** Nobody has answered it yet. */
  isOpen: boolean;
  /** The element that has the focus while the keys of the decisions work. */
  place: RefObject<HTMLElement | null>;
  /** Its title is that of the page. */
  isPage: boolean;
  onAnswered: (key: string) => void;
  onMove: (step: 1 | -1) => void;
};

/** One request: the question, what goes on, and the decisions. */
export function RequestDetail(props: RequestDetailProps) {
  const { request, digest, isOpen, place, isPage, onMove } = props;
  const fields = useMemo(() => readRequest(request), [request]);
  const key = draftKey(request.execution_id, request.request_id);
  const draft = useAnswerDraft(key, fields);
  const { answer, send } = useSend(props);
  const run = useRequestGraph(request);
  const isDone = isOver(answer.error) || (!isOpen && !answer.isPending && !answer.isSuccess);
  const reason = whyNotSent(answer.isPending, draft.isBroken);
  const decide = (action: string) => {
    if (!isDone && !reason) send(draft.answerWith(action));
  };
  useDecisionKeys(fields, place, decide);
  return (
    <section ref={place} className={styles.detail} aria-label="Request" tabIndex={-1}>
      <RequestHeader
        {...{ request, isPage, onMove }}
        title={titleOf(request, fields)}
        status={
          isDone ? (
            <Status status="completed">Answered</Status>
          ) : (
            <Status status="waiting">Waiting for you</Status>
          )
        }
      />
      <div className={styles.body}>
        <div className={styles.text}>
          {isDone && <GivenAnswer request={request} />}
          {fields.kind === PLAN_APPROVAL ? (
            <PlanRequest
              request={request}
              graph={run.graph}
              isOutdated={run.isChanged && !isDone}
            />
          ) : (
            fields.actions.length > 0 && fields.prompt && <Markdown text={fields.prompt} />
          )}
          <ChangeRequest request={request} graph={run.graph} />
          {!isDone && fields.actions.length > 0 && (
            <AnswerFields request={fields} draft={draft} errors={formErrors(answer.error)} />
          )}
          {!isDone && fields.actions.length === 0 && (
            <RequestForm
              draftKey={key}
              request={fields}
              isSending={answer.isPending}
              onAnswer={send}
            />
          )}
          {answer.error && !isDone && (
            <Note kind="error" alert>
              {answerProblem(answer.error)}
            </Note>
          )}
        </div>
        <RequestFacts
          request={request}
          fields={fields}
          digest={digest}
          graph={run.graph}
          path={request.path}
          isOpen={!isDone}
        />
      </div>
      {!isDone && fields.actions.length > 0 && (
        <DecisionBar
          fields={fields}
          plan={run.plan}
          isChanged={run.isChanged}
          draft={draft}
          reason={reason}
          onDecide={decide}
          onSend={send}
        />
      )}
    </section>
  );
}

function useSend({ request, onAnswered }: RequestDetailProps) {
  const answer = useAnswer();
  const navigate = useNavigate();
  const send = (given: RequestAnswer) =>
    answer.mutate(
      {
        executionId: request.execution_id,
        requestId: request.request_id,
        answer: "answer" in given ? given.answer : given,
      },
      {
        onSuccess: ({ execution_id }) => {
          const said = decisionWords("decision" in given ? given.decision : null);
          showToast({
            text: `${said}: ${titleOf(request, readRequest(request))}`,
            action: { label: "Open the run", onSelect: () => navigate(`/runs/${execution_id}`) },
          });
          onAnswered(keyOf(request));
        },
      },
    );
  return { answer, send };
}

/** A and R decide, but only while the request has the focus: nothing is approved in passing. */
function useDecisionKeys(
  { actions }: RequestFields,
  place: RefObject<HTMLElement | null>,
  decide: (action: string) => void,
): void {
  const keys = { a: "approve", r: "reject" };
  useShortcuts(
    "The request that has the focus",
    Object.entries(keys)
      .filter(([, action]) => actions.includes(action))
      .map(([key, action]) => ({
        keys: key,
        does: actionLabel(action),
        run: () => {
          if (place.current?.contains(document.activeElement)) decide(action);
        },
      })),
  );
}
