import type { ReactNode } from "react";
import { useAnswer } from "@/api/mutations";
import type { OpenRequestResponse } from "@/api/types";
import { draftKey } from "@/inspector/answerDraft";
import { answerProblem, formErrors } from "@/inspector/answerProblem";
import { OneTimeLink } from "@/inspector/OneTimeLink";
import { RequestForm } from "@/inspector/RequestForm";
import { actionLabel, readRequest } from "@/inspector/requestFields";
import { formatLeft } from "@/ui/format";
import styles from "./OpenRequest.module.css";

type OpenRequestProps = {
  executionId: string;
  request: OpenRequestResponse;
  now: number;
  /** Decisions that are made elsewhere. */
  without?: string;
  onAnswered?: () => void;
  /** What is asked about, above the buttons. */
  children?: ReactNode;
};

/** The question of a waiting step, to be answered here; the first answer counts. */
export function OpenRequest(props: OpenRequestProps) {
  const { executionId, request, now, without, onAnswered } = props;
  const answer = useAnswer();
  const asked = readRequest(request);
  const fields = { ...asked, actions: asked.actions.filter((action) => action !== without) };
  const left = fields.deadline === null ? null : (fields.deadline - now) / 1000;
  return (
    <section aria-label={fields.tool ? `Waiting for you: ${fields.tool.name}` : "Waiting for you"}>
      {left !== null && (
        <p className={styles.left}>
          {formatLeft(left)}
          {fields.timeoutAction && `, then it counts as “${actionLabel(fields.timeoutAction)}”`}
        </p>
      )}
      {fields.kind !== "timer" && (
        <OneTimeLink executionId={executionId} requestId={request.request_id} />
      )}
      <RequestForm
        draftKey={draftKey(executionId, request.request_id)}
        request={fields}
        isSending={answer.isPending}
        errors={formErrors(answer.error)}
        problem={answer.error && answerProblem(answer.error)}
        onAnswer={(given) =>
          // The run's events may take this form off the page before the response is there.
          void answer
            .mutateAsync({
              executionId,
              requestId: request.request_id,
              answer: "answer" in given ? given.answer : given,
            })
            .then(onAnswered, () => undefined)
        }
      >
        {props.children}
      </RequestForm>
    </section>
  );
}
