import { type ComponentChildren, Fragment, type VNode } from 'preact';

type Fact = readonly [title: string, value: ComponentChildren];

/** Facts without a value are left out. */
export function Facts({ facts }: { readonly facts: readonly Fact[] }): VNode {
  return (
    <dl class="facts">
      {facts
        .filter(([, value]) => value !== null && value !== undefined && value !== '')
        .map(([title, value]) => (
          <Fragment key={title}>
            <dt>{title}</dt>
            <dd>{value}</dd>
          </Fragment>
        ))}
    </dl>
  );
}

interface TileProps {
  readonly label: string;
  readonly value: ComponentChildren;
  readonly note?: ComponentChildren;
  readonly href?: string;
}

export function Tile({ label, value, note, href }: TileProps): VNode {
  const content = (
    <>
      <span class="label">{label}</span>
      <span class="value">{value}</span>
      {note !== undefined && <span class="note">{note}</span>}
    </>
  );
  return href === undefined ? (
    <div class="tile">{content}</div>
  ) : (
    <a class="tile" href={href}>
      {content}
    </a>
  );
}
