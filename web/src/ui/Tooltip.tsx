import { Tooltip as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { KeyHint } from "@/ui/KeyHint";
import styles from "@/ui/Tooltip.module.css";

export const TooltipProvider = Radix.Provider;

interface TooltipProps {
  text: string;
  keys?: string;
  /** One element that takes a ref and the handlers of a trigger. */
  children: ReactNode;
}

/** Shows the name of a control on hover and focus; the control has that name itself too. */
export function Tooltip({ text, keys, children }: TooltipProps) {
  return (
    <Radix.Root>
      <Radix.Trigger asChild>{children}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content className={styles.tip} sideOffset={6} collisionPadding={8}>
          {text}
          {keys && <KeyHint keys={keys} onInk />}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
