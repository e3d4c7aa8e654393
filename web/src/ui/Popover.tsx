import { Popover as Radix } from "radix-ui";
import { type ReactNode, useMemo } from "react";
import styles from "@/ui/Popover.module.css";

interface PopoverProps {
  /** The button that opens it. */
  trigger: ReactNode;
  /** Its name, for screen readers. */
  label: string;
  open?: boolean;
  onOpenChange?: (open: boolean) => void;
  align?: "start" | "center" | "end";
  /** Where it opens instead of beside its button, in px of the window. */
  at?: { x: number; y: number } | null | undefined;
  children: ReactNode;
}

/** A small panel beside the button that opened it. */
export function Popover(props: PopoverProps) {
  const { trigger, label, align = "start", at, children, ...state } = props;
  const anchor = useMemo(
    () => at && { current: { getBoundingClientRect: () => new DOMRect(at.x, at.y, 0, 0) } },
    [at],
  );
  return (
    <Radix.Root {...state}>
      {anchor && <Radix.Anchor virtualRef={anchor} />}
      <Radix.Trigger asChild>{trigger}</Radix.Trigger>
      <Radix.Portal>
        <Radix.Content
          className={styles.popover}
          aria-label={label}
          align={align}
          sideOffset={6}
          collisionPadding={8}
        >
          {children}
        </Radix.Content>
      </Radix.Portal>
    </Radix.Root>
  );
}
