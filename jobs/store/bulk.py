"""Many rows or values in one statement: on PostgreSQL one for each takes several times as long."""

from collections.abc import Iterable, Sequence

from sqlalchemy import BigInteger, ColumnElement, CursorResult, Table, any_, exc, func, literal, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import InstrumentedAttribute, Session


def insert_rows(
    session: Session,
    statement: postgresql.Insert | sqlite.Insert,
    columns: Sequence[str],
    rows: Sequence[Sequence[object]],
) -> int:
    """Execute an INSERT, with whatever it does about conflicts, for rows of some columns; return how many it wrote."""
    connection = session.connection()
    options = {"preserve_rowcount": True}
    table = statement.table
    assert isinstance(table, Table)
    if connection.dialect.name == "sqlite":
        named = [dict(zip(columns, row, strict=True)) for row in rows]
        result = connection.execute(statement, named, execution_options=options)
    else:
        types = [postgresql.ARRAY(table.columns[column].type) for column in columns]
        arrays = [literal(list(each), type_) for each, type_ in zip(zip(*rows, strict=True), types, strict=True)]
        values = func.unnest(*arrays).table_valued(*columns).render_derived()
        result = connection.execute(statement.from_select(columns, select(values)), execution_options=options)
    assert isinstance(result, CursorResult)
    return result.rowcount


def is_any_of(session: Session, column: InstrumentedAttribute[int], values: Sequence[int]) -> ColumnElement[bool]:
    """Return the condition that a column has one of many values; on PostgreSQL they are one parameter."""
    if session.get_bind().dialect.name == "sqlite":
        return column.in_(values)
    return column == any_(literal(values, postgresql.ARRAY(BigInteger())))


def copy_rows(session: Session, table: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Insert rows by COPY, the fastest way there is for many, and one that passes over none. SQLite has no such thing.

    Values go in as psycopg writes them, past the types of the columns here. It fails as any other statement does.
    """
    from psycopg import Connection, Error, sql  # which a service on SQLite never loads

    connection = session.connection().connection.driver_connection
    assert isinstance(connection, Connection)
    names = sql.SQL(", ").join(map(sql.Identifier, columns))
    statement = sql.SQL("COPY {} ({}) FROM STDIN").format(sql.Identifier(table), names)
    try:
        with connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)
    except Error as error:
        dialect = session.get_bind().dialect
        raise exc.DBAPIError.instance(statement.as_string(), None, error, Error, dialect=dialect) from error
