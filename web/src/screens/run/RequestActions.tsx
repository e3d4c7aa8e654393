import type { OpenRequestResponse } from "@/api/types";
import { GIVE_RESULT } from "@/inspector/answerDraft";
import { actionLabel, readRequest } from "@/inspector/requestFields";
import { Button } from "@/ui/Button";

type RequestActionsProps = {
  request: OpenRequestResponse;
  /** How many more requests the step has. */
  others?: number;
  /** Answers with an action and what is filled in; undefined while that cannot be sent. */
  onAnswer: ((action: string) => void) | undefined;
  /** Opens the step's panel. */
  onRead: () => void;
};

/** How many decisions fit on a card. */
const MOST_ACTIONS = 2;

/** The first decisions of a waiting step, on its card; everything else is in its panel. */
export function RequestActions({ request, others = 0, onAnswer, onRead }: RequestActionsProps) {
  const { actions, form, kind } = readRequest(request);
  if (kind === "timer") return null;
  const isAlone = onAnswer && form === null && others === 0;
  const shown = isAlone ? actions.filter(isQuick).slice(0, MOST_ACTIONS) : [];
  return (
    <>
      {shown.map((action, index) => (
        <Button
          key={action}
          small
          kind={index === 0 ? "plain" : "quiet"}
          onClick={() => onAnswer?.(action)}
        >
          {actionLabel(action)}
        </Button>
      ))}
      <Button small kind={shown.length > 0 ? "quiet" : "plain"} onClick={onRead}>
        {others > 0 ? `Read the ${others + 1} questions` : "Read it first"}
      </Button>
    </>
  );
}

function isQuick(action: string): boolean {
  return action !== GIVE_RESULT;
}
