import { DropdownMenu } from "radix-ui";
import type { ReactNode } from "react";
import { Icon, type IconName } from "@/ui/icons";
import { KeyHint } from "@/ui/KeyHint";
import styles from "@/ui/Menu.module.css";

export interface MenuItem {
  label: string;
  icon?: IconName;
  keys?: string;
  danger?: boolean;
  /** The item is one of a choice, and is chosen or not. */
  checked?: boolean;
  /** Disables the item and is shown below its label. */
  disabledReason?: string | undefined;
  onSelect: () => void;
}

interface MenuProps {
  /** The button that opens the menu. */
  trigger: ReactNode;
  items: readonly (MenuItem | "line")[];
  align?: "start" | "end";
}

/** A list of commands behind a button. */
export function Menu({ trigger, items, align = "end" }: MenuProps) {
  return (
    <DropdownMenu.Root modal={false}>
      <DropdownMenu.Trigger asChild>{trigger}</DropdownMenu.Trigger>
      <DropdownMenu.Portal>
        <DropdownMenu.Content
          className={styles.menu}
          align={align}
          sideOffset={4}
          collisionPadding={8}
        >
          {items.map((item, index) =>
            item === "line" ? (
              // biome-ignore lint/suspicious/noArrayIndexKey: a line has nothing but its place
              <DropdownMenu.Separator key={index} className={styles.line} />
            ) : (
              <Item key={item.label} {...item} />
            ),
          )}
        </DropdownMenu.Content>
      </DropdownMenu.Portal>
    </DropdownMenu.Root>
  );
}

function Item({ label, icon, keys, danger, checked, disabledReason, onSelect }: MenuItem) {
  return (
    <DropdownMenu.Item
      className={styles.item}
      data-danger={danger}
      disabled={Boolean(disabledReason)}
      onSelect={onSelect}
      {...(checked !== undefined && { role: "menuitemradio", "aria-checked": checked })}
    >
      {icon && <Icon name={icon} small />}
      <span className={styles.words}>
        {label}
        {disabledReason && <span className={styles.reason}>{disabledReason}</span>}
      </span>
      {checked && <Icon name="tick" small />}
      {keys && <KeyHint keys={keys} />}
    </DropdownMenu.Item>
  );
}
