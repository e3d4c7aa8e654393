import type { PlanResponse } from "@/api/types";
import type { AnswerDraft, RequestAnswer } from "@/inspector/answerDraft";
import { actionLabel, type RequestFields } from "@/inspector/requestFields";
import { Button, ButtonLink } from "@/ui/Button";
import styles from "./RequestDetail.module.css";
import { PLAN_APPROVAL } from "./requestWords";

type DecisionBarProps = {
  fields: RequestFields;
  /** The plan of the run as it is now. */
  plan: PlanResponse | null;
  /** It is another one than the run has. */
  isChanged: boolean;
  draft: AnswerDraft;
  /** Why nothing can be sent now. */
  reason: string | undefined;
  onDecide: (action: string) => void;
  onSend: (answer: RequestAnswer) => void;
};

const LOOKS = {
  approve: { icon: "tick", keys: "A" },
  reject: { keys: "R" },
} as const;

/** The decisions, always in sight. */
export function DecisionBar(props: DecisionBarProps) {
  const { fields, plan, isChanged, draft, reason, onDecide, onSend } = props;
  const isPlan = fields.kind === PLAN_APPROVAL;
  return (
    <footer className={styles.footer}>
      {fields.actions
        .filter((action) => !isPlan || action !== "edit")
        .map((action, index) => (
          <Button
            key={action}
            kind={index === 0 ? "primary" : "plain"}
            {...LOOKS[action as keyof typeof LOOKS]}
            disabledReason={index === 0 ? reason : undefined}
            onClick={() => onDecide(action)}
          >
            {actionLabel(action)}
          </Button>
        ))}
      {isPlan && plan && (
        <ButtonLink kind="quiet" icon="edit" to={`/plans/${plan.plan_id}`}>
          Edit
        </ButtonLink>
      )}
      {isPlan && plan && isChanged && (
        <Button
          onClick={() =>
            onSend({
              ...draft.answerWith("edit"),
              value: { plan_hash: plan.hash },
            } as RequestAnswer)
          }
        >
          Take revision {plan.revision} instead
        </Button>
      )}
      <p className={styles.hint}>
        The first answer counts. If somebody was faster, you see what they said.
      </p>
    </footer>
  );
}
