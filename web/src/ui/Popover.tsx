import { Popover as Radix } from "radix-ui";
import type { ReactNode } from "react";
import styles from "@/ui/Popover.module.css";

interface PopoverProps {
  /** The button that opens it. */
  trigger: ReactNode;
  /** Its name, for screen readers. */
  label: string;
  open?: boolean;
  onOpenChange?: (open: boolean) => void;
  align?: "start" | "center" | "end";
  children: ReactNode;
}

/** A small panel beside the button that opened it. */
export function Popover({ trigger, label, align = "start", children, ...state }: PopoverProps) {
  return (
    <Radix.Root {...state}>
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
